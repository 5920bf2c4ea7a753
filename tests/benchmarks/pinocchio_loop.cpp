// Pinocchio's algorithms over tables of configurations, row-major in and out: the peer of batch.py, which compiles this
// and calls it through ctypes. Also the plain memory writes that tell what one core can stream.
#include "pinocchio/algorithm/aba-derivatives.hpp"
#include "pinocchio/algorithm/aba.hpp"
#include "pinocchio/algorithm/centroidal.hpp"
#include "pinocchio/algorithm/crba.hpp"
#include "pinocchio/algorithm/jacobian.hpp"
#include "pinocchio/algorithm/rnea-derivatives.hpp"
#include "pinocchio/algorithm/rnea.hpp"
#include "pinocchio/multibody.hpp"
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace {

using namespace pinocchio;
using Row = Eigen::Map<const Eigen::VectorXd>;
using Vector = Eigen::Map<Eigen::VectorXd>;
using Twists = Eigen::Map<Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::RowMajor>>;

struct Robot {
  Model model;
  Data data;
  Eigen::Matrix<double, 6, Eigen::Dynamic> columns; // a Jacobian in Pinocchio's own order
  Eigen::MatrixXd square;                            // (nv, nv)
  explicit Robot(const Model &m) : model(m), data(m), columns(6, m.nv), square(m.nv, m.nv) { columns.setZero(); }
};

enum Kind { RX, RY, RZ, PX, PY, PZ, REVOLUTE, PRISMATIC, FREE };

// Axis 3, placement R 9 and p 3, mass, centre of mass 3, inertia about it 9, armature.
constexpr int NUMBERS = 29;

JointIndex add_joint(Model &m, int kind, JointIndex parent, const double *x, const std::string &name) {
  const Eigen::Vector3d axis(x);
  const SE3 at(Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(x + 3), Eigen::Vector3d(x + 12));
  switch (kind) {
  case RX: return m.addJoint(parent, JointModelRX(), at, name);
  case RY: return m.addJoint(parent, JointModelRY(), at, name);
  case RZ: return m.addJoint(parent, JointModelRZ(), at, name);
  case PX: return m.addJoint(parent, JointModelPX(), at, name);
  case PY: return m.addJoint(parent, JointModelPY(), at, name);
  case PZ: return m.addJoint(parent, JointModelPZ(), at, name);
  case REVOLUTE: return m.addJoint(parent, JointModelRevoluteUnaligned(axis), at, name);
  case PRISMATIC: return m.addJoint(parent, JointModelPrismaticUnaligned(axis), at, name);
  default: return m.addJoint(parent, JointModelFreeFlyer(), at, name);
  }
}

void add_body(Model &m, JointIndex joint, const double *x) {
  const Eigen::Matrix3d I = Eigen::Map<const Eigen::Matrix3d>(x + 19);
  m.appendBodyToJoint(joint, Inertia(x[15], Eigen::Vector3d(x + 16), Symmetric3(I)), SE3::Identity());
  m.armature.segment(m.idx_vs[joint], m.nvs[joint]).setConstant(x[28]);
}

using Task = void (*)(Robot &, const Row &q, const Row &v, const Row &a, double *out);

void gravity(Robot &r, const Row &q, const Row &, const Row &, double *out) {
  Vector(out, r.model.nv) = computeGeneralizedGravity(r.model, r.data, q);
}

void inverse_dynamics(Robot &r, const Row &q, const Row &v, const Row &a, double *out) {
  Vector(out, r.model.nv) = rnea(r.model, r.data, q, v, a);
}

template <Convention convention>
void forward_dynamics(Robot &r, const Row &q, const Row &v, const Row &tau, double *out) {
  Vector(out, r.model.nv) = aba(r.model, r.data, q, v, tau, convention);
}

void momentum_with_rate(Robot &r, const Row &q, const Row &v, const Row &, double *out) {
  Twists(out, 6, r.model.nv) = ccrba(r.model, r.data, q, v);
}

void momentum_alone(Robot &r, const Row &q, const Row &, const Row &, double *out) {
  Twists(out, 6, r.model.nv) = computeCentroidalMap(r.model, r.data, q);
}

// crba fills the upper triangle. The lower one as its documentation has it, then one copy in order …
template <Convention convention>
void mass_matrix(Robot &r, const Row &q, const Row &, const Row &, double *out) {
  Data::MatrixXs &M = r.data.M;
  crba(r.model, r.data, q, convention);
  M.triangularView<Eigen::StrictlyLower>() = M.transpose();
  std::memcpy(out, M.data(), sizeof(double) * M.size());
}

// … or both triangles straight to where they belong; which is faster depends on the size.
void mass_matrix_mirrored(Robot &r, const Row &q, const Row &, const Row &, double *out) {
  crba(r.model, r.data, q, Convention::LOCAL);
  Eigen::Map<Eigen::MatrixXd>(out, r.model.nv, r.model.nv) = r.data.M.selfadjointView<Eigen::Upper>();
}

// The columns that a joint does not depend on stay the zeros that the caller gave, as Pinocchio's own function has it.
void jacobians_in_place(Robot &r, const Row &q, const Row &, const Row &, double *out) {
  const int nv = r.model.nv;
  computeJointJacobians(r.model, r.data, q);
  for (int j = 1; j < r.model.njoints; ++j, out += 6 * nv) {
    Twists J(out, 6, nv);
    getJointJacobian(r.model, r.data, j, LOCAL_WORLD_ALIGNED, J);
  }
}

void jacobians_copied(Robot &r, const Row &q, const Row &, const Row &, double *out) {
  const int nv = r.model.nv;
  computeJointJacobians(r.model, r.data, q);
  for (int j = 1; j < r.model.njoints; ++j, out += 6 * nv) {
    r.columns.setZero();
    getJointJacobian(r.model, r.data, j, LOCAL_WORLD_ALIGNED, r.columns);
    Twists(out, 6, nv) = r.columns;
  }
}

// Matrices by rows, one after the other, as ours are.
void put(double *out, const Eigen::Ref<const Eigen::MatrixXd> &A) {
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(out, A.rows(), A.cols()) = A;
}

void inverse_dynamics_derivatives(Robot &r, const Row &q, const Row &v, const Row &a, double *out) {
  computeRNEADerivatives(r.model, r.data, q, v, a);
  put(out, r.data.dtau_dq);
  put(out + r.data.dtau_dq.size(), r.data.dtau_dv);
}

void forward_dynamics_derivatives(Robot &r, const Row &q, const Row &v, const Row &tau, double *out) {
  computeABADerivatives(r.model, r.data, q, v, tau);
  put(out, r.data.ddq_dq);
  put(out + r.data.ddq_dq.size(), r.data.ddq_dv);
  Eigen::Map<Eigen::MatrixXd>(out + 2 * r.data.ddq_dq.size(), r.model.nv, r.model.nv) =
      r.data.Minv.selfadjointView<Eigen::Upper>();
}

void gravity_derivative(Robot &r, const Row &q, const Row &, const Row &, double *out) {
  r.square.setZero();
  computeGeneralizedGravityDerivatives(r.model, r.data, q, r.square);
  put(out, r.square);
}

const std::map<std::string, Task> TASKS = {
    {"computeGeneralizedGravity", gravity},
    {"rnea", inverse_dynamics},
    {"aba local", forward_dynamics<Convention::LOCAL>},
    {"aba world", forward_dynamics<Convention::WORLD>},
    {"ccrba", momentum_with_rate},
    {"computeCentroidalMap", momentum_alone},
    {"crba local", mass_matrix<Convention::LOCAL>},
    {"crba world", mass_matrix<Convention::WORLD>},
    {"crba local mirrored", mass_matrix_mirrored},
    {"computeRNEADerivatives", inverse_dynamics_derivatives},
    {"computeABADerivatives", forward_dynamics_derivatives},
    {"computeGeneralizedGravityDerivatives", gravity_derivative},
    {"getJointJacobian in place", jacobians_in_place},
    {"getJointJacobian copied", jacobians_copied},
};

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *make_robot(int joints, const int *kinds, const int *parents, const double *numbers,
                        const double *gravity) {
  Model m;
  for (int i = 0; i < joints; ++i, numbers += NUMBERS)
    add_body(m, add_joint(m, kinds[i], parents[i], numbers, "joint" + std::to_string(i)), numbers);
  m.gravity.linear() = Eigen::Vector3d(gravity);
  return new Robot(m);
}

EXPORT void free_robot(void *robot) { delete static_cast<Robot *>(robot); }

// q (rows, nq), v and a (rows, nv) → out (rows, size); a is tau for aba. 0: done; 1: no such task.
EXPORT int run_rows(void *robot, const char *name, int64_t rows, int64_t size, const double *q, const double *v,
                    const double *a, double *out) {
  const auto task = TASKS.find(name);
  if (task == TASKS.end()) return 1;
  Robot &r = *static_cast<Robot *>(robot);
  const int nq = r.model.nq, nv = r.model.nv;
  for (int64_t i = 0; i < rows; ++i)
    task->second(r, Row(q + i * nq, nq), Row(v + i * nv, nv), Row(a + i * nv, nv), out + i * size);
  return 0;
}

// Non-temporal stores of 64 bytes, or what comes nearest to them, over a 64-byte aligned buffer.
EXPORT void stream(double *out, int64_t bytes) {
#if defined(__AVX512F__)
  const __m512d value = _mm512_set1_pd(1.0);
  for (int64_t i = 0; i < bytes / 8; i += 8) _mm512_stream_pd(out + i, value);
  _mm_sfence();
#elif defined(__AVX__)
  const __m256d value = _mm256_set1_pd(1.0);
  for (int64_t i = 0; i < bytes / 8; i += 4) _mm256_stream_pd(out + i, value);
  _mm_sfence();
#else
  std::memset(out, 1, bytes);
#endif
}

EXPORT void fill_bytes(double *out, int64_t bytes) { std::memset(out, 1, bytes); }
