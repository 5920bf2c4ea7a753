"""Values for attributes of MJCF by name, and where it matters by element: what `sprinkle` draws from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.random_models.random_mjcf import Maker

Draw = Callable[["Maker"], str]


def span(low: float, high: float, least: int = 1, most: int = 0) -> Draw:
    """So many numbers between two, least to most of them."""
    return lambda maker: maker.text(int(maker.rng.integers(least, max(most, least) + 1)), low, high)


def word(words: str) -> Draw:
    """One of some words."""
    return lambda maker: maker.pick(words.split())


def some(*values: str) -> Draw:
    """One of some texts."""
    return lambda maker: maker.pick(values)


def of(kind: str) -> Draw:
    """The name of one of the model's joints, sites …; "" where there is none."""
    return lambda maker: maker.pick(getattr(maker, kind)) if getattr(maker, kind) else ""


SWITCH = word("true false")
AUTO = word("true false auto")
VALUES: dict[str, Draw] = {
    "name": lambda maker: maker.fresh(),
    "class": of("classes"),
    "childclass": of("classes"),
    **dict.fromkeys(("armature",), span(0, 0.2)),
    **dict.fromkeys(("damping", "stiffness"), span(0, 2, 1, 3)),
    "frictionloss": span(0, 0.5),
    **dict.fromkeys("ctrllimited forcelimited actlimited limited actuatorfrclimited".split(), AUTO),
    "ctrlrange": some("-0.5 0.7", "0 1", "-2 2", "0 2"),
    "forcerange": some("-2 1.5", "-30 40", "0 3"),
    **dict.fromkeys(("actrange", "posrange"), some("-0.6 0.5", "-3 4")),
    **dict.fromkeys(("velrange", "ffrange"), some("-0.4 0.6", "-5 4")),
    "actuatorfrcrange": some("-2 3", "-40 30"),
    **dict.fromkeys(("actearly", "actuatorgravcomp", "shellinertia"), SWITCH),
    "actdim": word("1 2 3"),
    "dyntype": word("none integrator filter filterexact muscle"),
    "gaintype": word("fixed affine muscle"),
    "biastype": word("none affine muscle"),
    **dict.fromkeys(("dynprm", "gainprm", "biasprm"), span(0.1, 2, 1, 3)),
    "gear": span(-1, 1, 1, 6),
    "cranklength": span(3, 5),
    "lengthrange": some("-2 3", "-1 1"),
    "inheritrange": span(0.3, 1.2),
    **dict.fromkeys(("kp", "kv"), span(0, 10)),
    "ki": span(0, 2),
    "dampratio": span(0.3, 2),
    "imax": span(0.1, 1),
    "slewmax": span(0.1, 3),
    "area": span(0.1, 2),
    "diameter": span(0.1, 2),
    "bias": span(-1, 1, 3),
    "force": span(5, 50),
    **dict.fromkeys(("fpmax", "fvmax", "vmax"), span(1, 3)),
    "scale": span(50, 300),
    "lmin": span(0.3, 0.5),
    "lmax": span(1.5, 1.8),
    "tausmooth": span(0, 0.1),
    "timeconst": some("0.05 0.1", "0.3"),
    "gain": span(1, 20),
    "cogging": some("0.02 6 0.4", "0.1"),
    "controller": some("10 0 3", "5", "10 2 1 3 0.5 20"),
    "inductance": some("0 0.05", "0.02"),
    "lugre": some("20 0.3 0.02 0.03 0.4"),
    "motorconst": span(0.05, 1, 1, 2),
    "nominal": some("12 2 300", "24 0.5 100"),
    "resistance": span(0.5, 3),
    "saturation": some("0.05 0 40", "3", "0 5"),
    "thermal": some("1 1 3", "2 10 0 0.004 25 20"),
    "input": word("pos vel ff voltage pos,vel pos,vel,ff pos,ff vel,ff none"),
    "cutoff": span(0.5, 2),
    "noise": span(0.1, 1),
    "user": some("1", "1 2"),
    "axis": span(-1, 1, 3),
    "type": word("hinge slide ball sphere capsule ellipsoid cylinder box mesh 2d fixed"),
    **dict.fromkeys(("ref", "springref"), span(-0.5, 0.5)),
    "springdamper": span(0.1, 1, 2),
    "range": some("-500 500", "-900 800", "0 500", "0.7 1.1"),
    "springlength": some("0.2", "0.1 0.4"),
    "margin": span(0, 0.02),
    "gap": span(0, 0.01),
    "group": word("0 1 2 3 4 5"),
    "pos": span(-0.3, 0.3, 3),
    "quat": span(-1, 1, 4),
    "euler": span(-90, 90, 3),
    "axisangle": span(-1, 1, 4),
    "zaxis": span(-1, 1, 3),
    "xyaxes": span(-1, 1, 6),
    "fromto": span(-0.3, 0.3, 6),
    "size": span(0.03, 0.2, 1, 3),
    "density": span(100, 2000),
    "mass": span(0.3, 3),
    **dict.fromkeys(("contype", "conaffinity"), word("0 1 2 3")),
    "condim": word("1 3 4 6"),
    "priority": word("0 1 2 -1"),
    "friction": span(0.05, 1, 1, 3),
    **dict.fromkeys(("solref", "solreflimit", "solreffriction"), some("0.03 0.9", "-200 -10", "0.05", "0.1 1.3")),
    **dict.fromkeys(
        ("solimp", "solimplimit", "solimpfriction"), some("0.8 0.9 0.01 0.4 2", "0.7 0.9", "0.9 0.9 0.1 0.5 1")
    ),
    "solmix": span(0, 2),
    "adhesion": span(0, 3),
    "surfacevel": span(-1, 1, 1, 6),
    "fitscale": span(0.5, 1.5),
    "fluidshape": word("ellipsoid none"),
    "fluidcoef": span(0, 2, 1, 5),
    "material": of("materials"),
    "mesh": of("meshes"),
    "rgba": some(".1 .2 .3 .5", "1 0 0 0"),
    "active": SWITCH,
    "torquescale": span(0.3, 2),
    "gravcomp": span(0.1, 1.2),
    "align": AUTO,
    "maxhullvert": word("-1 4 8"),
    "inertia": word("convex exact legacy shell"),
    "refpos": span(-0.2, 0.2, 3),
    "refquat": span(-1, 1, 4),
    "sidesite": of("sites"),
    "divisor": span(1, 3),
    **dict.fromkeys(("qpos", "qvel", "ctrl", "act"), lambda maker: ""),  # `rare.keyframe` knows their lengths
    "integrator": word("RK4"),
}
BY_ELEMENT: dict[str, Draw] = {
    "option.impratio": span(1, 5),
    "option.timestep": some("0.001", "0.003"),
    "option.gravity": span(-10, 10, 3),
    "option.wind": span(-1, 1, 3),
    "option.magnetic": span(-1, 1, 3),
    "option.density": span(1, 1000),
    "option.viscosity": span(0, 2),
    "option.o_margin": span(0, 0.1),
    "option.o_solref": some("0.03 0.9", "0.1 1"),
    "option.o_solimp": some("0.8 0.9 0.01 0.4 2"),
    "option.o_friction": span(0.1, 1, 5),
    "option.actuatorgroupdisable": some("1", "0 2", "3 4"),
    **{f"option.{name}": word("60 100") for name in ("iterations", "ls_iterations", "noslip_iterations")},
    **{f"option.{name}": word("40 60") for name in ("ccd_iterations", "sdf_iterations", "sdf_initpoints")},
    **{f"option.{name}": some("1e-12") for name in "tolerance ls_tolerance noslip_tolerance ccd_tolerance".split()},
    "option.sleep_tolerance": some("1e-9"),
    "option.solver": word("Newton CG"),
    "option.cone": word("elliptic pyramidal"),
    "option.jacobian": word("dense sparse auto"),
    "compiler.angle": word("radian degree"),
    "compiler.eulerseq": word("xyz ZYX zxz XyZ"),
    "compiler.inertiafromgeom": AUTO,
    "compiler.inertiagrouprange": some("0 3", "0 5", "1 4"),
    "compiler.boundmass": span(0, 1),
    "compiler.boundinertia": span(0, 0.1),
    "compiler.settotalmass": span(1, 20),
    "compiler.coordinate": some("local"),
    "compiler.conflict": word("warning merge error"),
    **{f"compiler.{name}": some(".") for name in ("assetdir", "meshdir", "texturedir")},
    "compiler.strippath": SWITCH,
    "lengthrange.mode": word("none muscle muscleuser all"),
    "lengthrange.useexisting": SWITCH,
    "lengthrange.uselimit": SWITCH,
    "lengthrange.accel": span(10, 30),
    "lengthrange.maxforce": span(0, 100),
    "lengthrange.timeconst": span(0.5, 1),
    "lengthrange.timestep": span(0.005, 0.01),
    "lengthrange.inttotal": span(5, 10),
    "lengthrange.interval": span(1, 2),
    "lengthrange.tolrange": span(0.05, 0.5),
    "flag.sleep": some("disable"),  # MuJoCo stops with many models that sleep
    "flag": word("disable enable"),
    "pid.input": word("pos vel ff pos,vel pos,vel,ff pos,ff vel,ff"),
    "weld.relpose": lambda maker: maker.text(3) + " " + maker.text(4),
    "mesh.scale": span(0.1, 0.4, 3),
    "adhesion.ctrlrange": some("0 1", "0 3"),
    "muscle.ctrlrange": some("0 1"),
    "muscle.range": some("0.7 1.1"),
    "damper.ctrlrange": some("0 2"),
    "muscle.timeconst": span(0.01, 0.05, 2),
    "pair.friction": span(0.05, 1, 5),
    "body.sleep": word("auto never allowed init"),
    "body.fuse": word("auto true false"),
    "body.simple": word("auto true false"),
    "light.type": word("spot directional point image"),
    "light.mode": word("fixed track trackcom"),
    "light.texture": some("tx"),
    **{f"light.{name}": span(0.1, 1) for name in ("range", "softness")},
    "camera.mode": word("fixed track trackcom"),
    "camera.output": word("rgb depth distance normal segmentation"),
    "camera.projection": word("perspective orthographic"),
    "texture.type": word("2d cube skybox"),
    "texture.builtin": word("gradient checker flat"),
    "texture.mark": word("none edge cross random"),
    "texture.colorspace": word("auto linear sRGB"),
    "texture.gridsize": some("1 1", "3 4"),
    "skin.material": of("materials"),
    "layer.role": word("rgb occlusion roughness metallic normal opacity emissive"),
    "layer.texture": some("tx"),
    "mesh.texcoord": some(" ".join(["0.5"] * 16)),
    "size.memory": some("1M"),
    "size.nuserdata": word("2 5"),
    "compiler.passthrough": SWITCH,
    "flexcomp.cellcount": some("2 2 2"),
    "flexcomp.material": of("materials"),
    "flexcomp.xyaxes": some("1 0 0 0 1 0"),
    "site.mesh": of("meshes"),
    "replicate.euler": span(-90, 90, 3),
    "replicate.offset": span(-1, 1, 3),
    "body.mocap": some("false"),
    **{f"{kind}.polycoef": span(-0.5, 0.5, 1, 5) for kind in ("joint", "tendon")},
}
PAIRS = {  # attributes that say something only with another
    "delay": {"nsample": "4"},
    "nsample": {"delay": "0.004"},
    "interp": {"nsample": "6", "delay": "0.005"},
    "interval": {"nsample": "3"},
    "limited": {"range": "-500 500"},
    "ctrllimited": {"ctrlrange": "-0.5 0.7"},
    "forcelimited": {"forcerange": "-2 1.5"},
    "actlimited": {"actrange": "-0.6 0.5"},
    "actuatorfrclimited": {"actuatorfrcrange": "-2 3"},
}
DELAYS: dict[str, Draw] = {
    "delay": some("0.004", "0.001", "0.013"),
    "nsample": word("1 2 5 9"),
    "interp": word("zoh linear cubic"),
    "interval": some("0.01 -0.004", "0.006"),
}
ANYTHING = ("true", "1", "0.5 0.5", ".1 .2 .3", ".1 .2 .3 1", "8 8", "1 0 0 0 0 0", "a")  # where nothing is known


def drawn(maker: Maker, kind: str, name: str) -> list[str]:
    """A value for an attribute, or several of which one may do; none where there is nothing to name."""
    draw = BY_ELEMENT.get(f"{kind}.{name}") or BY_ELEMENT.get(kind) or DELAYS.get(name) or VALUES.get(name)
    if draw is None:
        return list(ANYTHING)
    value = draw(maker).replace(",", " ")
    return [value] if value else []
