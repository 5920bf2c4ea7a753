"""Random SDF models, each with the same robot as a URDF: places in the world are drawn first, then written in frames
drawn at random among those that a name may mean there.

Links and joints are spread over nested models, some of which are files of their own; poses are Euler angles, degrees or
quaternions; joints may lead towards the root; a model of version 1.6 has no frames and axes of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
KINDS = ("revolute", "continuous", "prismatic", "fixed", "universal", "revolute2", "screw")
SHARES = (0.3, 0.15, 0.2, 0.1, 0.1, 0.05, 0.1)
MASSES = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


class Drawn(NamedTuple):
    """A model's files by name (model.sdf is the outermost), the URDF, and what must come of reading the first.

    `floating`: whether the root is free; `offsets`: of each link, its frame in the URDF's link; `geoms`: of each
    collision by name, its frame in its link; `joints`: of each movable joint by name, its settings.
    """

    files: dict[str, str]
    urdf: str
    gravity: tuple[float, float, float]
    floating: bool
    offsets: dict[str, Array]
    geoms: dict[str, Array]
    joints: dict[str, dict[str, float | None]]


def random_sdf(seed: int, number: int) -> Drawn:
    """A model, the same for the same seed and number."""
    return _Draw(np.random.default_rng([seed, number, 5])).drawn()


# ------------------------------------------------------------------ rigid motions


def turn(axis: Array, angle: float) -> Array:
    """exp of an angle about a unit vector (3, 3)."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def at(rotation: Array, position: Array) -> Array:
    """The rigid motion (4, 4)."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = rotation, position
    return X


def angles_of(R: Array) -> Array:
    """Roll, pitch and yaw: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    return np.array([np.arctan2(R[2, 1], R[2, 2]), np.arctan2(-R[2, 0], np.hypot(R[2, 1], R[2, 2])),
                     np.arctan2(R[1, 0], R[0, 0])])  # fmt: skip


def quaternion_of(R: Array) -> Array:
    """x, y, z, w: the eigenvector of the largest eigenvalue, good for any angle (Bar-Itzhack 2000)."""
    (a, b, c), (d, e, f), (g, h, i) = R
    K = [[a - e - i, b + d, c + g, h - f], [b + d, e - a - i, f + h, c - g],
         [c + g, f + h, i - a - e, d - b], [h - f, c - g, d - b, a + e + i]]  # fmt: skip
    found: Array = np.linalg.eigh(np.array(K) / 3)[1][:, -1]
    return found


def words(values: Any) -> str:
    """Numbers to the last bit."""
    return " ".join(repr(float(value)) for value in values)


# ------------------------------------------------------------------ the model


class _Scope:
    """A model: its frame in the world, its element, and what may be named in it, each with its frame and its link."""

    def __init__(self, name: str, frame: Array, element: Element, above: _Scope | None, file: str = "") -> None:
        self.name, self.frame, self.element, self.above, self.file = name, frame, element, above, file
        self.merged = False  # into the one above, by its <include>
        self.prefix = ""
        self.named: dict[str, tuple[Array, str]] = {}  # frame in the world, whole name of its link
        self.canonical = ""

    def path_from(self, scope: _Scope) -> str | None:
        """What stands before names of this scope in another that holds it; None: the other does not."""
        path, here = "", self
        while here is not scope:
            if here.above is None:
                return None
            path = ("" if here.merged else f"{here.name}::") + path
            here = here.above
        return path


class _Draw:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.old = rng.random() < 0.15
        self.version = "1.6" if self.old else str(rng.choice(["1.7", "1.8", "1.9", "1.10", "1.11", "1.12"]))
        self.floating = bool(rng.random() < 0.35)
        self.wrapped = not self.old and bool(rng.random() < 0.4)
        self.root = Element("sdf", version=self.version)
        self.gravity = (0.0, 0.0, -9.81)
        self.world: Element | None = None
        self.scopes: list[_Scope] = []
        self.links: dict[str, tuple[Array, _Scope, Element]] = {}
        self.inertias: dict[str, tuple[float, Array, list[float]]] = {}  # mass, frame in the link, tensor
        self.urdf_frames: dict[str, Array] = {}  # of the URDF's links in the world
        self.offsets: dict[str, Array] = {}
        self.geoms: dict[str, Array] = {}
        self.joints: dict[str, dict[str, float | None]] = {}
        self.scalars: list[tuple[str, str, _Scope]] = []  # joints that mimics may follow: whole name, axis, scope
        self.urdf = Element("robot", name="random")

    def drawn(self) -> Drawn:
        self._draw_scopes()
        count = max(len(self.scopes), int(self.rng.integers(2, 8)))
        for n in range(count):
            self._draw_link(n)
        self._hold_root()
        for n in range(1, count):
            self._draw_joint(n)
        files = self._files()
        urdf = tostring(self.urdf, encoding="unicode")
        return Drawn(files, urdf, self.gravity, self.floating, self.offsets, self.geoms, self.joints)

    # --- scopes

    def _draw_scopes(self) -> None:
        parent = self.root
        if self.wrapped:
            self.gravity = tuple(self.rng.normal(0, 6, 3).tolist())  # type: ignore[assignment]
            parent = self.world = SubElement(self.root, "world", name="w")
            SubElement(parent, "gravity").text = words(self.gravity)
        top = _Scope("robot", self._frame(1.0), SubElement(parent, "model", name="robot"), None)
        top.prefix = "robot::" if self.wrapped else ""
        self.scopes.append(top)
        for n in range(0 if self.old else int(self.rng.integers(0, 4))):
            above = self.scopes[int(self.rng.integers(len(self.scopes)))]
            name = f"m{n}"
            file = f"{name}.sdf" if self.rng.random() < 0.5 else ""
            scope = _Scope(name, self._frame(0.5), Element("model", name=name), above, file)
            scope.merged = bool(file and self.rng.random() < 0.4)
            scope.prefix = above.prefix + ("" if scope.merged else f"{name}::")
            self.scopes.append(scope)

    def _frame(self, size: float) -> Array:
        axis = self.rng.normal(size=3)
        return at(turn(axis / np.linalg.norm(axis), self.rng.uniform(-2.5, 2.5)), self.rng.uniform(-size, size, 3))

    # --- links

    def _draw_link(self, n: int) -> None:
        rng = self.rng
        # each model has a link, the outermost the first
        scope = self.scopes[n] if n < len(self.scopes) else self.scopes[int(rng.integers(len(self.scopes)))]
        X = self._frame(1.0)
        element = SubElement(scope.element, "link", name=f"l{n}")
        whole = f"{scope.prefix}l{n}"
        self._place(element, X, scope)
        self.links[whole] = (X, scope, element)
        scope.named[f"l{n}"] = (X, whole)
        scope.canonical = scope.canonical or f"l{n}"
        self._inertial(element, X, whole)
        for k in range(int(rng.integers(0, 3))):
            shape = SubElement(element, "collision", name=f"c{k}")
            G = self._frame(0.3)
            self._place(shape, X @ G, scope, X)
            SubElement(SubElement(SubElement(shape, "geometry"), "sphere"), "radius").text = "0.1"
            self.geoms[f"{whole}::c{k}"] = G
        for k in range(0 if self.old else int(rng.integers(0, 3))):
            self._named_frame(scope, f"f{n}_{k}")

    def _inertial(self, element: Element, X: Array, whole: str) -> None:
        rng = self.rng
        inertial = SubElement(element, "inertial")
        C = self._frame(0.2)
        SubElement(inertial, "mass").text = repr(mass := float(rng.uniform(0.2, 3)))
        pose = self._pose(inertial, C)
        if not self.old and rng.random() < 0.3:
            pose.set("relative_to", whole.rpartition("::")[2])
        values = [*rng.uniform(0.02, 0.03, 3), *rng.uniform(-0.004, 0.004, 3)]
        tensor = SubElement(inertial, "inertia")
        for name, value in zip(MASSES, values, strict=True):
            SubElement(tensor, name).text = repr(float(value))
        self.inertias[whole] = (mass, C, values)

    def _named_frame(self, scope: _Scope, name: str) -> None:
        """A <frame> attached to something that is there."""
        X = self._frame(0.7)
        known = self._nameable(scope)
        to = str(self.rng.choice(sorted(known)))
        element = SubElement(scope.element, "frame", name=name, attached_to=to)
        if self.rng.random() < 0.2:  # its pose is then in what it is attached to
            self._pose(element, np.linalg.inv(known[to][0]) @ X)
        else:
            other = str(self.rng.choice(sorted(known)))
            self._pose(element, np.linalg.inv(known[other][0]) @ X).set("relative_to", other)
        scope.named[name] = (X, known[to][1])

    def _nameable(self, scope: _Scope) -> dict[str, tuple[Array, str]]:
        """All names that mean something in a scope."""
        found: dict[str, tuple[Array, str]] = {}
        for other in self.scopes:
            path = other.path_from(scope)
            if path is not None:
                found |= {path + name: item for name, item in other.named.items()}
        return found

    # --- poses

    def _place(self, element: Element, X: Array, scope: _Scope, default: Array | None = None) -> None:
        """Give an element its <pose>, by default in the scope's own frame, in a frame drawn at random."""
        known = {} if self.old else self._nameable(scope)
        inside = scope.frame if default is None else default
        if known and self.rng.random() < 0.6:
            name = str(self.rng.choice(sorted(known)))
            self._pose(element, np.linalg.inv(known[name][0]) @ X).set("relative_to", name)
            return
        pose = self._pose(element, np.linalg.inv(inside) @ X)
        if default is None and not self.old and self.rng.random() < 0.2:
            pose.set("relative_to", "__model__")

    def _pose(self, element: Element, X: Array) -> Element:
        """<pose> in one of the forms."""
        pose = SubElement(element, "pose")
        form = "" if self.old or self.version == "1.7" else str(self.rng.choice(["", "degrees", "quaternion"]))
        if self.version in ("1.7", "1.8") and form == "quaternion":
            form = ""
        if form == "quaternion":
            pose.set("rotation_format", "quat_xyzw")
            pose.text = words([*X[:3, 3], *quaternion_of(X[:3, :3])])
        elif form == "degrees":
            pose.set("degrees", "true")
            pose.text = words([*X[:3, 3], *np.degrees(angles_of(X[:3, :3]))])
        else:
            pose.text = words([*X[:3, 3], *angles_of(X[:3, :3])])
        return pose

    # --- joints

    def _hold_root(self) -> None:
        """The first link is free, or stands in the world."""
        whole = next(iter(self.links))
        X, scope, _ = self.links[whole]
        if not self.floating:
            hold = SubElement(scope.element, "joint", name="hold", type="fixed")
            SubElement(hold, "parent").text = "world"
            SubElement(hold, "child").text = whole.rpartition("::")[2]
        # the URDF's root stands where the model does where it is fixed, and is the link itself where that is free
        self.urdf_frames[whole] = X if self.floating else np.eye(4)
        self._urdf_link(whole)

    def _draw_joint(self, n: int) -> None:
        rng = self.rng
        wholes = list(self.links)
        below, above = wholes[n], wholes[int(rng.integers(n))]
        kind = str(rng.choice(KINDS, p=SHARES))
        scope = self._common(self.links[below][1], self.links[above][1])
        backward = not self.floating and bool(rng.random() < 0.25)
        element = SubElement(scope.element, "joint", name=f"j{n}", type=kind)
        inside = np.eye(4)
        for role, whole in zip(("parent", "child"), (below, above) if backward else (above, below), strict=True):
            name, inside = self._end(scope, whole)
            SubElement(element, role).text = name
        J = self._frame(1.0)
        child = above if backward else below
        self._place(element, J, scope, inside)  # by default in what <child> names
        scope.named[f"j{n}"] = (J, child)
        axes = {} if kind == "fixed" else {"axis": self._axis(element, "axis", scope, J)}
        if kind in ("universal", "revolute2"):
            axes["axis2"] = self._axis(element, "axis2", scope, J)
        pitch = float(rng.uniform(-1, 1)) if kind == "screw" else 0.0
        if kind == "screw":
            name = "screw_thread_pitch" if self.version in ("1.10", "1.11", "1.12") or rng.random() < 0.5 else ""
            SubElement(element, name or "thread_pitch").text = repr(pitch if name else -2 * np.pi / pitch)
        whole = f"{scope.prefix}j{n}"
        parts = self._parts(whole, kind, axes, J)
        self._urdf_joints(parts, above, below, J, backward)
        if kind == "screw":
            self._mimic_urdf(f"{whole}.slide", whole, pitch / (2 * np.pi), 0.0)
        self._settings(element, whole, kind, scope)

    def _common(self, one: _Scope, other: _Scope) -> _Scope:
        """The innermost scope that holds both."""
        scope = one
        while other.path_from(scope) is None:
            assert scope.above is not None
            scope = scope.above
        return scope

    def _end(self, scope: _Scope, whole: str) -> tuple[str, Array]:
        """A link by its name, by a frame that moves with it, or by its model; and that frame in the world."""
        known = {name: X for name, (X, link) in self._nameable(scope).items() if link == whole}
        _, inner, _ = self.links[whole]
        path = inner.path_from(scope)
        assert path is not None
        if path and not inner.merged and inner.canonical == whole.rpartition("::")[2] and self.rng.random() < 0.3:
            return path.removesuffix("::"), inner.frame
        name = path + whole.rpartition("::")[2] if self.old else str(self.rng.choice(sorted(known)))
        return name, known[name]

    def _axis(self, element: Element, which: str, scope: _Scope, J: Array) -> Array:
        """<axis> with its direction in a frame drawn at random; the direction in the world."""
        axis = SubElement(element, which)
        vector = self.rng.normal(size=3)
        vector /= np.linalg.norm(vector)
        xyz = SubElement(axis, "xyz")
        frame = J
        if self.old and self.rng.random() < 0.5:
            SubElement(axis, "use_parent_model_frame").text = "true"
            frame = scope.frame
        elif not self.old and self.rng.random() < 0.5:
            known = self._nameable(scope) | {"__model__": (scope.frame, "")}
            name = str(self.rng.choice(sorted(known)))
            frame = known[name][0]
            xyz.set("expressed_in", name)
        xyz.text = words(frame[:3, :3].T @ vector)
        return vector

    def _parts(self, whole: str, kind: str, axes: dict[str, Array], J: Array) -> list[tuple[str, str, Array]]:
        """The joints of a URDF that a joint is: name, type, axis in the world."""
        if kind == "fixed":
            return [(whole, "fixed", J[:3, 2])]
        if kind in ("universal", "revolute2"):
            return [(whole, "continuous", axes["axis"]), (f"{whole}.axis2", "continuous", axes["axis2"])]
        if kind == "screw":
            return [(whole, "continuous", axes["axis"]), (f"{whole}.slide", "prismatic", axes["axis"])]
        return [(whole, kind, axes["axis"])]

    def _settings(self, element: Element, whole: str, kind: str, scope: _Scope) -> None:
        """Limits, damping, friction, springs and mimics."""
        rng = self.rng
        for axis, suffix in (("axis", ""), ("axis2", ".axis2")):
            holder = element.find(axis)
            if holder is None:
                continue
            made: dict[str, float | None] = dict.fromkeys(("lower", "upper", "effort", "velocity"))
            made |= dict.fromkeys(("damping", "friction", "stiffness", "spring_reference"), 0.0)
            if rng.random() < 0.6 and kind != "continuous":
                limit = SubElement(holder, "limit")
                given = {"lower": -rng.uniform(0, 3), "upper": rng.uniform(0, 3)}
                given |= {"effort": rng.uniform(1, 9), "velocity": rng.uniform(1, 9)} if rng.random() < 0.5 else {}
                for name, value in given.items():
                    SubElement(limit, name).text = repr(float(value))
                    made[name] = float(value)
            if rng.random() < 0.5:
                dynamics = SubElement(holder, "dynamics")
                for name, tag in (("damping", "damping"), ("friction", "friction"), ("stiffness", "spring_stiffness"),
                                  ("spring_reference", "spring_reference")):  # fmt: skip
                    SubElement(dynamics, tag).text = repr(value := float(rng.uniform(0, 2)))
                    made[name] = value
            self.joints[whole + suffix] = made
            if kind != "screw" and self.version in ("1.11", "1.12") and rng.random() < 0.3:
                self._mimic(holder, whole + suffix, scope)
            self.scalars.append((whole, axis, scope))

    def _mimic(self, axis: Element, whole: str, scope: _Scope) -> None:
        leaders = [(name, which) for name, which, inner in self.scalars if inner.path_from(scope) is not None]
        leaders = [item for item in leaders if item[0] != whole.removesuffix(".axis2")]
        if not leaders:
            return
        name, which = leaders[int(self.rng.integers(len(leaders)))]
        multiplier, offset, reference = self.rng.uniform(-2, 2, 3).tolist()
        item = SubElement(axis, "mimic", joint=name.removeprefix(scope.prefix), axis=which)
        for tag, value in (("multiplier", multiplier), ("offset", offset), ("reference", reference)):
            SubElement(item, tag).text = repr(value)
        leader = name + (".axis2" if which == "axis2" else "")
        self._mimic_urdf(whole, leader, multiplier, offset - multiplier * reference)

    # --- the URDF

    def _urdf_link(self, whole: str) -> None:
        mass, C, values = self.inertias[whole]
        link = SubElement(self.urdf, "link", name=whole)
        X, U = self.links[whole][0], self.urdf_frames[whole]
        self.offsets[whole] = np.linalg.inv(U) @ X
        inertial = SubElement(link, "inertial")
        _origin(inertial, self.offsets[whole] @ C)
        SubElement(inertial, "mass", value=repr(mass))
        SubElement(inertial, "inertia", {n: repr(float(v)) for n, v in zip(MASSES, values, strict=True)})

    def _urdf_joints(
        self, parts: list[tuple[str, str, Array]], above: str, below: str, J: Array, backward: bool
    ) -> None:
        """The joints in the order from the root, about axes the other way where the joint leads towards it."""
        parts = parts[::-1] if backward else parts
        parent, frame = above, self.urdf_frames[above]
        for k, (name, kind, axis) in enumerate(parts):
            child = below if k == len(parts) - 1 else f"{below}.between"
            if child != below:
                SubElement(self.urdf, "link", name=child)
            joint = SubElement(self.urdf, "joint", name=name, type=kind)
            SubElement(joint, "parent", link=parent)
            SubElement(joint, "child", link=child)
            _origin(joint, np.linalg.inv(frame) @ J)
            if kind != "fixed":
                SubElement(joint, "axis", xyz=words((-1 if backward else 1) * J[:3, :3].T @ axis))
            if kind in ("revolute", "prismatic"):
                SubElement(joint, "limit", lower="-9", upper="9", effort="100", velocity="100")
            parent, frame = child, J
        self.urdf_frames[below] = J
        self._urdf_link(below)

    def _mimic_urdf(self, follower: str, leader: str, multiplier: float, offset: float) -> None:
        joint = next(item for item in self.urdf.iter("joint") if item.get("name") == follower)
        SubElement(joint, "mimic", joint=leader, multiplier=repr(multiplier), offset=repr(offset))

    # --- files

    def _files(self) -> dict[str, str]:
        """Nested models put into those that hold them, or into files that these include; elements in any order."""
        files: dict[str, str] = {}
        for scope in reversed(self.scopes[1:]):
            assert scope.above is not None
            self._shuffle(scope.element)
            above = scope.above.element
            if scope.file:
                files[scope.file] = self._alone(scope.element)
                holder = SubElement(above, "include", {"merge": "true"} if scope.merged else {})
                SubElement(holder, "uri").text = scope.file
                SubElement(holder, "name").text = scope.name
            else:
                holder = scope.element
                above.append(holder)
            X = scope.frame
            if scope.named and self.rng.random() < 0.4:
                placed = str(self.rng.choice(sorted(scope.named)))
                X = scope.named[placed][0]
                if scope.file:
                    SubElement(holder, "placement_frame").text = placed
                else:
                    holder.set("placement_frame", placed)
            self._place_model(holder, X, scope)
        top = self.scopes[0]
        self._shuffle(top.element)
        self._pose(top.element, top.frame)
        return files | {"model.sdf": tostring(self.root, encoding="unicode")}

    def _place_model(self, holder: Element, X: Array, scope: _Scope) -> None:
        """The pose of a nested model, in a frame of its parent that hangs on none of its own."""
        assert scope.above is not None
        own = {
            name: item for name, item in scope.above.named.items() if name.startswith("l") and self._fixed(scope, name)
        }
        if own and self.rng.random() < 0.5:
            name = str(self.rng.choice(sorted(own)))
            self._pose(holder, np.linalg.inv(own[name][0]) @ X).set("relative_to", name)
        else:
            self._pose(holder, np.linalg.inv(scope.above.frame) @ X)

    def _fixed(self, scope: _Scope, name: str) -> bool:
        """Whether a link of the scope above is placed in its model's own frame."""
        assert scope.above is not None
        pose = self.links[scope.above.prefix + name][2].find("pose")
        return pose is not None and pose.get("relative_to", "__model__") == "__model__"

    def _alone(self, model: Element) -> str:
        root = Element("sdf", version=self.version)
        root.append(model)
        return tostring(root, encoding="unicode")

    def _shuffle(self, model: Element) -> None:
        """Frames, joints and models in any order, links and what is merged in theirs: the first link counts."""
        items = list(model)
        ordered = [item for item in items if item.tag == "link"] + [item for item in items if item.get("merge")]
        loose = [item for item in items if item not in ordered]
        order = self.rng.permutation(len(loose))
        for item in items:
            model.remove(item)
        model.extend([*(loose[k] for k in order[::2]), *ordered, *(loose[k] for k in order[1::2])])


def _origin(element: Element, X: Array) -> None:
    SubElement(element, "origin", xyz=words(X[:3, 3]), rpy=words(angles_of(X[:3, :3])))
