"""What the default step keeps, beside MuJoCo's at the same step: energy of springs and spin, closed loops, drives.

python -m tests.benchmarks.keeping [cases | springs | orders | loops | drives] …

All sections without an argument. Energies are those of the run's end less its start, as a share of the scale that the
line names; "not finite" is said of either.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import mujoco
import numpy as np

from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ArtsimError
from tests.simulation import ROBOTS, Array, simulate
from tests.stepping.test_energy_keeping import BODY, CRANK, SPRING, TENDON, ball_chain, quartic_chain
from tests.stepping.test_scenes import bennett, gaps, platform

NAN = float("nan")
DEAD_CENTRE = {"crank": 0.001, "rod": -0.0013333331481480942, "s": 0.3999999333333364}
BALLS = """<mujoco><option gravity="0 0 -9.81"/><worldbody>{}</worldbody></mujoco>"""


def ours(text: str, dt: float, seconds: float, **config: Any) -> tuple[Array, Array, float]:
    """Coordinates and energies of all rows, and the largest gap of loops [m]; nan where it is not finite."""
    config.setdefault("record", ("qpos", "energy"))
    try:
        run = simulate(load_text(text, name="model.xml"), steps=round(seconds / dt), dt=dt, **config)
    except ArtsimError:
        return np.full((1, 1), NAN), np.full(2, NAN), NAN
    gap = run.simulation.loop_gap
    energy = np.append(run["energy"].sum(axis=1), run.simulation.energy[1])
    return run["qpos"], energy, NAN if gap is None else gap[0]


def peers(text: str, dt: float, seconds: float, q0: Any = (), v0: Any = ()) -> tuple[Array, Array]:
    """MuJoCo's coordinates and energies, by its default integrator; q0 and v0 by name of a joint of one dof or all."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = dt
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    for name, value in dict(q0).items():
        data.qpos[model.joint(name).qposadr[0]] = value
    if len(v0):
        data.qvel[:] = v0
    rows, energy = [], []
    for _ in range(round(seconds / dt)):
        mujoco.mj_forward(model, data)
        rows.append(data.qpos.copy())
        energy.append(data.energy.sum())
        mujoco.mj_step(model, data)
        if data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number or not np.isfinite(data.qpos).all():
            return np.full((1, 1), NAN), np.full(2, NAN)
    return np.array(rows), np.array(energy)


def shown(value: float) -> str:
    return f"{value:12.3g}" if math.isfinite(value) else "  not finite"


def line(name: str, mine: float, theirs: float, what: str) -> None:
    print(f"{name:44s} {shown(mine)} {shown(theirs)}  {what}", flush=True)


def cases() -> None:
    """The named cases, each with two variants."""
    print("\ncase                                                 ours       MuJoCo")
    for stiffness, dt in ((100, 0.002), (1e4, 0.002), (400, 0.01)):
        text = SPRING.format(kind="hinge", stiffness=stiffness, damping=0)
        _, mine, _ = ours(text, dt, 1.0, q0={"j": 0.1})
        _, theirs = peers(text, dt, 1.0, {"j": 0.1})
        what = "of the energy, mean of the last tenth"
        tenth = len(mine) // 10
        line(f"spring {stiffness:g} N m/rad, {dt:g} s", *(x[-tenth:].mean() / x[0] - 1 for x in (mine, theirs)), what)
    for speed, dt in ((40.0, 0.004), (8.0, 0.004), (40.0, 0.001)):
        text = BODY.format(joint='freejoint name="root"', centre="0 0 0", mass=1, inertia=".001 .003 .0036")
        _, mine, _ = ours(text, dt, 10.0, v0={"root.wx": 0.1, "root.wy": speed, "root.wz": 0.1})
        _, theirs = peers(text, dt, 10.0, v0=[0, 0, 0, 0.1, speed, 0.1])
        line(f"T-handle {speed:g} rad/s, {dt:g} s", mine[-1] / mine[0] - 1, theirs[-1] / theirs[0] - 1, "of the energy")
    wheel = BODY.format(joint='joint name="b" type="ball"', centre=".15 0 0", mass=2, inertia=".02 .01 .01")
    wheel = wheel.replace('gravity="0 0 0"', 'gravity="0 0 -9.81"')
    for dt in (0.0005, 0.001, 0.002):
        _, mine, _ = ours(wheel, dt, 5.0, v0={"b.wx": 1047.19755, "b.wz": 0.140518})
        _, theirs = peers(wheel, dt, 5.0, v0=[1047.19755, 0, 0.140518])
        line(f"wheel at 1e4 rpm, {dt:g} s", mine[-1] - mine[0], theirs[-1] - theirs[0], f"J of {mine[0]:.3g}")
    for dt in (0.001, 0.002, 0.004):
        _, mine, _ = ours(quartic_chain(), dt, 4.0, q0={"j0": 1.1})
        _, theirs = peers(quartic_chain(), dt, 4.0, {"j0": 1.1})
        line(f"quartic chain, {dt:g} s", mine[-1] - mine[0], theirs[-1] - theirs[0], "J after 4 s")
    chain = (ROBOTS / "chain20.urdf").read_text()
    for joint, start, dt in (("joint_1", 1.5, 0.001), ("joint_1", 1.5, 0.002), ("joint_1", 1.5, 0.004),
                             ("joint_1", 2.5, 0.002), ("joint_10", 1.5, 0.002)):  # fmt: skip
        _, mine, _ = ours(chain, dt, 3.0, q0={joint: start})
        _, theirs = peers(chain, dt, 3.0, {joint: start})
        line(f"chain20 from {joint} = {start}, {dt:g} s", mine[-1] - mine[0], theirs[-1] - theirs[0], "J after 3 s")
    for limit, dt in ((10, 0.002), (30, 0.002), (60, 0.002), (30, 0.004)):
        _, mine, _ = ours(ball_chain(limit), dt, 3.0)
        _, theirs = peers(ball_chain(limit), dt, 3.0)
        what = "J, the most that ten balls fallen onto their limits gain"
        line(f"ten balls within {limit} degrees, {dt:g} s", *(float((x - x[0]).max()) for x in (mine, theirs)), what)
    for stiffness, dt in ((1e5, 1 / 240), (1e5, 0.001), (1e7, 0.001)):
        _, _, gap = ours(
            CRANK, dt, 1.0, q0=DEAD_CENTRE, stiffness={"s": stiffness}, damping={"s": 2e3}, target={"s": 0.5}
        )
        driven = f'name="s" stiffness="{stiffness}" springref=".5" damping="2e3"'
        rows, _ = peers(CRANK.replace('name="s"', driven), dt, 1.0, DEAD_CENTRE)
        other = gaps(CRANK, rows[:: max(1, len(rows) // 200)]) if np.isfinite(rows).all() else NAN
        line(f"crank at its dead centre, {stiffness:g} N/m, {dt:.4g} s", gap, other, "m, the loop's gap")


def springs() -> None:
    """Energy after 100 periods, joints, balls and tendons, damped and not."""
    print("\nspring        ωh  damping          ours       MuJoCo  of the energy left, the last period by the first")
    for kind in ("joint", "ball", "tendon"):
        for hw in (0.002, 0.02, 0.2, 2.0, 20.0):
            for ratio in (0.0, 0.05):
                text, q0, v0, theirs = sprung(kind, (hw / 0.002) ** 2, 2 * ratio * hw / 0.002)
                seconds = max(100 * 2 * math.pi / hw * 0.002, 0.2)
                period = max(round(2 * math.pi / hw), 1)
                _, mine, _ = ours(text, 0.002, seconds, q0=q0, v0=v0)
                _, other = peers(text, 0.002, seconds, q0, theirs)
                left = [x[-period:].mean() / x[:period].mean() for x in (mine, other)]
                print(f"{kind:8s} {hw:8g} {ratio:8g}  {shown(left[0])} {shown(left[1])}", flush=True)


def sprung(kind: str, stiffness: float, damping: float) -> tuple[str, dict[str, float], dict[str, float], list[float]]:
    """A model of one spring, its start here (q0, v0) and there (v0)."""
    if kind == "joint":
        return SPRING.format(kind="hinge", stiffness=stiffness, damping=damping), {"j": 0.1}, {}, []
    if kind == "ball":
        joint = f'joint name="j" type="ball" stiffness="{stiffness}" damping="{damping}"'
        text = BODY.format(joint=joint, centre="0 0 0", mass=1, inertia="1 1 1")
        speed = 0.1 * math.sqrt(stiffness)
        return text, {}, {"j.wx": speed}, [speed, 0.0, 0.0]
    text = TENDON.format(stiffness=stiffness * 0.33).replace("springlength", f'damping="{damping * 0.33}" springlength')
    return text, {"j": -0.1}, {}, []


def orders() -> None:
    """Errors at three steps against 0.1 ms, and the exponents between them."""
    print("\norder                                   errors at 4, 2, 1 ms [rad or m], and the exponents")
    pendulum = (ROBOTS / "double_pendulum.urdf").read_text()
    body = BODY.format(joint='freejoint name="root"', centre="0 0 0", mass=1, inertia=".02 .025 .04")
    rod = '<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2"/>'
    ball = '<body pos="0 0 {}"><joint name="{}" type="ball"/>' + rod + "{}</body>"
    balls = BALLS.format(ball.format(0, "a", ball.format(-0.2, "b", ball.format(-0.2, "c", ""))))
    for name, text, config in (
        ("double pendulum", pendulum, {"q0": {"joint_1": 1.0}}),
        ("free body", body, {"v0": {"root.wx": 1.0, "root.wy": 5.0, "root.wz": 0.1}}),
        ("three balls", balls, {"v0": {"a.wx": 3.0, "a.wy": 1.0, "b.wz": 2.0}}),
        ("quartic chain", quartic_chain(), {"q0": {"j0": 1.1}}),
    ):
        ends = [ours(text, dt, 1.0 + dt, **config)[0][-1] for dt in (0.004, 0.002, 0.001, 0.0001)]
        errors = [float(np.abs(end - ends[-1]).max()) for end in ends[:-1]]
        exponents = np.log2(np.divide(errors[:-1], errors[1:]))
        print(f"{name:24s} {' '.join(map(shown, errors))}   {np.round(exponents, 2)}", flush=True)


def loops() -> None:
    """Linkages for ten seconds: the gap that the summary states, what the energy does, MuJoCo's energy and gap."""
    print("\nlinkage            dt [s]      gap [m]   energy [J]  MuJoCo: gap       energy")
    for name, (text, q0) in linkages().items():
        for dt in (0.001, 0.004, 0.01):
            _, mine, gap = ours(text, dt, 10.0, q0=q0)
            rows, theirs = peers(text, dt, 10.0, q0)
            other = gaps(text, rows[:: max(1, len(rows) // 200)]) if np.isfinite(rows).all() else NAN
            drift = [float(np.abs(x - x[0]).max()) for x in (mine, theirs)]
            values = " ".join(map(shown, (gap, drift[0], other, drift[1])))
            print(f"{name:16s} {dt:8g} {values}", flush=True)


def linkages() -> dict[str, tuple[str, dict[str, float]]]:
    """Models that close, with their starts."""
    weighty = CRANK.replace('gravity="0 0 0"', 'gravity="0 0 -9.81"')
    return {
        "four-bar": (four_bar(), {}),
        "six-bar": (six_bar(), {}),
        "Bennett": bennett(),
        "Oldham": (oldham(), {}),
        "slider-crank": (weighty, DEAD_CENTRE),
        "Stewart": (platform()[0].replace("<worldbody>", '<option gravity="3 -2 -9"/><worldbody>'), {}),
    }


def four_bar(further: str = "", more: str = "", closing: str = "") -> str:
    """A crank of 0.2 m, a coupler of 0.5 m, a rocker of 0.4 m on 0.5 m of ground, hung in a plane across y."""
    coupler, rocker = ".3 0 -.4", "0 0 -.4"
    return f"""<mujoco><worldbody>
      <body><joint axis="0 1 0"/>{rod(".2 0 0")}
        <body pos=".2 0 0"><joint axis="0 1 0"/>{rod(coupler)}<site name="a" pos="{coupler}"/></body></body>
      <body pos=".5 0 0"><joint axis="0 1 0"/>{rod(rocker)}<site name="b" pos="{rocker}"/>{further}</body>{more}
      </worldbody><equality><connect site1="a" site2="b"/>{closing}</equality></mujoco>"""


def six_bar() -> str:
    """Watt's second linkage: the rocker of the four-bar drives a second rocker by a second coupler."""
    coupler, rocker = ".4 0 -.2", "0 0 -.4"
    return four_bar(
        f'<body pos="0 0 -.2"><joint axis="0 1 0"/>{rod(coupler)}<site name="c" pos="{coupler}"/></body>',
        f'<body pos=".9 0 0"><joint axis="0 1 0"/>{rod(rocker)}<site name="d" pos="{rocker}"/></body>',
        '<connect site1="c" site2="d"/>',
    )


def rod(end: str) -> str:
    """A kilogram along a link."""
    return f'<geom type="capsule" size=".01" fromto="0 0 0 {end}" mass="1" contype="0" conaffinity="0"/>'


def oldham() -> str:
    """Two hubs on parallel axles, 0.02 m apart; a disk slides across on the first and along on the second."""
    disk = '<geom type="cylinder" size=".1 .01" mass="1"/>'
    return f"""<mujoco><worldbody>
      <body><joint axis="0 0 1" armature=".001"/>{disk}
        <body pos=".02 0 .05"><joint type="slide" axis="1 0 0"/>{disk}
          <body><joint type="slide" axis="0 1 0"/><geom size=".01" mass=".1"/><site name="a" pos="0 0 .05"/></body>
        </body></body>
      <body pos=".02 0 .1"><joint axis="0 0 1" armature=".001"/>{disk}<geom pos=".1 0 0" size=".03" mass=".5"/>
        <site name="b"/></body></worldbody>
      <option gravity="0 -9.81 0"/><equality><weld site1="a" site2="b"/></equality></mujoco>"""


def drives() -> None:
    """A drive that lifts a rod: where it rests beside the closed form m g L cos q = K (target - q)."""
    print("\ndrive K [N m/rad]   off its rest [rad]")
    text = SPRING.format(kind="hinge", stiffness=0, damping=0).replace('gravity="0 0 0"', 'gravity="0 -9.81 0"')
    text = text.replace('pos="0 0 0" mass="1"', 'pos="0 0 .2" mass="1"')
    for exponent in range(1, 9):
        stiffness = 10.0**exponent
        damping = 2.0 * math.sqrt(stiffness)
        drive = {"stiffness": {"j": stiffness}, "damping": {"j": damping}, "target": {"j": 0.5}}
        rows, _, _ = ours(text, 0.002, 20.0, **drive)
        q = float(rows[-1, 0])
        rest = 0.5 + 9.81 * 0.2 * math.cos(q) / stiffness
        print(f"{stiffness:12g} {shown(q - rest)}", flush=True)


def main(names: list[str]) -> None:
    sections = {f.__name__: f for f in (cases, springs, orders, loops, drives)}
    for name in names or sections:
        sections[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
