"""What the MJCF reader makes of every attribute: each is put, with a value that cannot be, into small models.

An attribute is read where that is refused or makes another robot, and without effect where the robot stays the same.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection
from itertools import chain
from pathlib import Path

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import SENSOR_KINDS as KINDS
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError

NOTHING = "??"  # neither a number nor a word that MJCF knows, nor the name of anything
WORDS = {"solver": "CG", "cone": "elliptic", "jacobian": "dense"}  # of which only that is looked at
SWITCHES = {"override": "enable"}  # of flags: all others can be disabled
CUBE = 'vertex="0 0 0 1 0 0 0 1 0 1 1 0 0 0 1 1 0 1 0 1 1 1 1 1"'
BODIES = """<body name="b"><joint name="j" range="-1 1" damping="1" stiffness="1" frictionloss="1"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom name="g" size="1"/><site name="s"/></body>
<body name="c"><joint name="k"/><geom name="h" size="1"/><site name="t" pos="0 0 1"/></body>
<body name="f"><freejoint/><geom name="fg" size="1"/><site name="fs"/></body>
<body name="o" pos="3 0 0"><joint name="ball" type="ball" range="0 1"/><geom name="og" size="1"/></body>"""
TENDONS = """<tendon><fixed name="x" range="0 1"><joint joint="j" coef="1"/></fixed>
<spatial name="w"><site site="s"/><site site="t"/></spatial></tendon>"""
GEOMS = ['size="1"'] + [
    f"type={kind} {more}"
    for kind, more in (
        ('"sphere"', 'size="1"'),
        ('"hfield"', ""),
        ('"sphere"', 'size="1" mass="1"'),
        ('"box"', 'size="1 1 1"'),
        ('"box"', 'mesh="m"'),
        ('"capsule"', 'size="1 1"'),
        ('"capsule"', 'size="1"'),
        ('"mesh"', 'mesh="m"'),
        ('"hfield"', 'hfield="hf"'),
        ('"ellipsoid"', 'size="1 1 1" fluidshape="ellipsoid"'),
    )
]
JOINTS = ["", 'type="ball"', 'range="0 1"']
SITES = ["", 'type="box"', 'type="capsule" size="1"']
ACTUATORS = {
    "intvelocity": 'joint="j" actrange="-1 1"',
    "pid": 'joint="j" input="pos vel ff"',
    "damper": 'joint="j" ctrlrange="0 1"',
    "orientation": 'joint="ball"',
    "muscle": 'joint="j" lengthrange="0 1"',
    "adhesion": 'body="b" ctrlrange="0 1"',
    "dcmotor": 'joint="j" motorconst="1" resistance="1"',
}
FORCE = "0.75 1.05 -1 200 0.5 1.6 1.5 1.3 1.2"  # of a muscle
SENSED = {"site": "s", "joint": "j", "tendon": "x", "actuator": "a", "body": "b", "objtype": "body"}
ASSETS = f"""<asset><mesh name="m" {CUBE}/><hfield name="hf" nrow="2" ncol="2" size="1 1 1 1"/>
<texture name="t" type="2d" builtin="flat" width="1" height="1"/></asset>"""


def model(world: str = BODIES, more: str = "", before: str = ASSETS) -> str:
    return f"<mujoco>{before}<worldbody>{world}</worldbody>{more}</mujoco>"


def of(more: str) -> list[str]:
    """Sections beside a few bodies, joints, geoms, sites and tendons."""
    return [model(more=TENDONS + more)]


def attached(attach: str, compiler: str = "", asset: str = '<model name="a" file="child.xml"/>') -> str:
    return model(attach, before=f'<compiler {compiler}/><option timestep="0.1"/><asset>{asset}</asset>')


def meshes(inside: str, compiler: str = "") -> str:
    """Bodies of a mesh and of a height field."""
    world = """<body><joint/><geom type="mesh" mesh="n"/></body><geom type="hfield" hfield="h"/>
    <body><geom name="g" size="1" material="p"/></body>"""
    rest = [
        '<texture name="t" type="2d" builtin="flat" width="1" height="1"/>',
        f'<mesh name="n" {CUBE}/>',
        '<hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/>',
        '<material name="p"/>',
    ]
    kept = "".join(one for one in rest if one[:5] not in inside)
    return model(world, before=f"<compiler {compiler}/><asset>{kept}{inside}</asset>")


def grids(inside: str = "", *kinds: str) -> list[str]:
    """Points of all sorts; the flexcomp has `@` where its own attributes are asked for."""
    own = "" if inside else "@"
    return [model(f'<flexcomp name="f" {kind} {own}>{inside}</flexcomp>', before="") for kind in kinds or GRIDS]


GRIDS = [
    'type="grid" count="3 3 1" spacing="0.1 0.1 0.1" dim="2"',
    'type="grid" count="3 3 3" spacing="0.1 0.1 0.1" dim="3"',
    'type="mesh" file="cube.stl" dim="2"',
    'type="mesh" file="cube.stl" dim="3"',
    'type="direct" point="0 0 0 1 0 0 0 1 0" element="0 1 2" dim="2"',
    'type="ellipsoid" count="4 4 4" spacing="0.1 0.1 0.1" dim="3" dof="radial"',
    'type="mesh" file="cube.stl" dim="2" rigid="true" inertiabox="0.1"',
]
EDGES = '<edge equality="true" @/>'
PAIRED = """<geom name="g" size="1"/><body name="b"><joint/><geom name="h" size="1"/></body>"""
MOTOR = '<actuator><motor joint="j" ctrlrange="-1 1" group="1"/></actuator>'
TIED = '<equality><joint joint1="j" joint2="k"/></equality><sensor><jointpos joint="j"/></sensor>'
POLY = 'polycoef="0 1 0 0 0"'
MODELS: dict[str, list[str]] = {
    "": ["<mujoco @><worldbody/></mujoco>"],
    "default": [model(before="<default><default @/></default>")],
    "option": [model(before=f"<option @/>{ASSETS}"), model(more=MOTOR, before="<option @/>")],
    "option/flag": [model(more=TENDONS + MOTOR + TIED, before="<option o_margin='1'><flag @/></option>")],
    "compiler": [
        model(before=f"<compiler @/>{ASSETS}"),
        meshes('<mesh name="n" file="cube.stl"/>', "@"),
        attached('<attach model="a" prefix="p"/>', "@"),
    ],
    "worldbody/joint": [model(f'<body><joint {kind} @/><geom size="1"/></body>') for kind in JOINTS],
    "worldbody/geom": [model(f"<body><geom {geom} @/></body>") for geom in GEOMS],
    "worldbody/site": [model(f"<body><site {site} @/></body>") for site in SITES],
    "worldbody/inertial": [model('<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1" @/></body>')],
    "worldbody/freejoint": [model('<body><freejoint @/><geom size="1"/></body>')],
    "worldbody/body": [model('<body @><geom size="1"/></body>')],
    "worldbody/body/frame": [model('<body><frame @><geom size="1 1 1" type="box"/></frame></body>')],
    "worldbody/body/frame/replicate": [model('<replicate count="2" @><geom name="g" size="1"/></replicate>')],
    "worldbody/attach": [attached('<attach model="a" prefix="p" body="b" @/>'), attached('<attach model="a" @/>')],
    "asset/model": [attached('<attach model="a" prefix="p"/>', asset='<model name="a" file="child.xml" @/>')],
    "asset/mesh": [
        *(meshes(f'<mesh name="n" {kind} @/>') for kind in (CUBE, 'file="cube.stl"', f'{CUBE} face="0 1 2"')),
        meshes('<mesh name="n" builtin="sphere" params="1" @/>'),
    ],
    "asset/hfield": [
        meshes(f'<hfield name="h" {kind} size="1 1 1 1" @/>')
        for kind in ('nrow="2" ncol="2"', 'nrow="2" ncol="2" elevation="1 2 3 4"', 'file="heights.png"')
    ],
    "asset/material": [meshes('<material name="p" @/>')],
    "worldbody/flexcomp": grids(),
    "worldbody/flexcomp/edge": grids(EDGES),
    "worldbody/flexcomp/contact": grids('<contact contype="0" @/>', GRIDS[0]),
    "worldbody/flexcomp/pin": grids("<pin @/>", GRIDS[0]),
    "contact/pair": [model(PAIRED, '<contact><pair geom1="g" geom2="h" @/></contact>')],
    "contact/exclude": of('<contact><exclude body1="b" body2="c" @/></contact>'),
    "tendon/spatial": of('<tendon><spatial range="0 1" @><site site="s"/><site site="t"/></spatial></tendon>'),
    "tendon/fixed": of('<tendon><fixed range="0 1" @><joint joint="j" coef="1"/></fixed></tendon>'),
    "tendon/fixed/joint": of('<tendon><fixed><joint joint="j" coef="1" @/></fixed></tendon>'),
    "tendon/spatial/site": of('<tendon><spatial><site site="s"/><site site="t" @/></spatial></tendon>'),
    "tendon/spatial/geom": of('<tendon><spatial><site site="s"/><geom geom="g" @/><site site="t"/></spatial></tendon>'),
    "tendon/spatial/pulley": of(
        '<tendon><spatial><site site="s"/><site site="t"/><pulley divisor="2" @/><site site="s"/><site site="t"/>'
        "</spatial></tendon>"
    ),
    "equality/connect": [
        *of('<equality><connect body1="b" body2="c" anchor="0 0 0" @/></equality>'),
        *of('<equality><connect site1="s" site2="t" @/></equality>'),
    ],
    "equality/weld": [
        *of('<equality><weld body1="b" body2="c" @/></equality>'),
        *of('<equality><weld site1="s" site2="t" @/></equality>'),
    ],
    "equality/joint": of(f'<equality><joint joint1="j" joint2="k" {POLY} @/></equality>'),
    "equality/tendon": of(f'<equality><tendon tendon1="x" tendon2="w" {POLY} @/></equality>'),
    "keyframe/key": of("<keyframe><key @/></keyframe>"),
}
HEIRS = {
    "joint": "worldbody/joint",
    "geom": "worldbody/geom",
    "site": "worldbody/site",
    "mesh": "asset/mesh",
    "material": "asset/material",
    "pair": "contact/pair",
    "equality": "equality/weld",
    "tendon": "tendon/spatial",
}


def documents(path: tuple[str, ...], attributes: Collection[str]) -> list[str]:
    """Models with the element, `@` among its attributes; of a class with an element that it is for."""
    above, name = path[:-1], path[-1] if path else "mujoco"
    if above == ("actuator",):
        return actuators(name)
    if above == ("sensor",):
        return sensors(name, attributes)
    if above == ("default",) and (name in HEIRS or "gear" in attributes or name in ("adhesion", "orientation")):
        heirs = documents(tuple(HEIRS[name].split("/")), ()) if name in HEIRS else actuators(name)
        least = 'motorconst="1" resistance="1"' if name == "dcmotor" else ""  # which a class must have, too
        if name == "general":
            heirs += [*actuators("pid"), *actuators("muscle")]
        return [
            document.replace("@", "").replace("<mujoco>", f"<mujoco><default><{name} {least} @/></default>")
            for document in heirs
        ]
    if "/".join(path) in MODELS:
        return MODELS["/".join(path)]
    outer, inner = "".join(f"<{tag}>" for tag in above), "".join(f"</{tag}>" for tag in reversed(above))
    return [f"<mujoco>{outer}<{name} @/>{inner}</mujoco>"]


def every_element() -> list[str]:
    """A model with each element that is read."""
    kinds = [*actuators("general"), *(actuators(name)[0] for name in ACTUATORS)]
    kinds += [
        sensors(name, ("objtype",) if known.object == "frame" else (known.object,))[0] for name, known in KINDS.items()
    ]
    return [model.replace("@", "") for model in (*chain(*MODELS.values()), *kinds)]


def actuators(name: str) -> list[str]:
    """Of a kind, on what it may be."""
    given = ACTUATORS.get(name, 'joint="j"')
    rest = given.partition('" ')[2]
    target = given.partition('" ')[0] + '"' * (rest != "")
    kinds = [given, target, rest, f'cranksite="s" slidersite="t" cranklength="1" {rest}']
    kinds += [] if name in ("muscle", "adhesion") else [f'site="s" {rest}']
    if name == "orientation":
        kinds = [given, 'site="s" refsite="t"']
    if name == "general":
        kinds += [f'{given} dyntype="filter"', f'{given} gaintype="affine" biastype="affine"']
        kinds += [f'{given} gaintype="muscle" biastype="muscle" dyntype="muscle" gainprm="{FORCE}" biasprm="{FORCE}"']
    documents = [element for kind in kinds for element in of(f"<actuator><{name} {kind} @/></actuator>")]
    servo = '<mujoco><default><pid input="pos vel ff"/></default>'
    return documents + [documents[0].replace("<mujoco>", servo)] * (name == "general")


def sensors(name: str, attributes: Collection[str]) -> list[str]:
    """Of what it may be of."""
    needed = " ".join(f'{kind}="{named}"' for kind, named in SENSED.items() if kind in attributes)
    kinds = [needed.replace('"j"', '"ball"') if name.startswith("ball") else needed]
    if "objtype" in attributes:
        kinds = ['objtype="body" objname="b" reftype="body" refname="c"'[: None if "reftype" in attributes else 26]]
    if name == "contact":
        kinds = ["", *(f'{kind}="{SENSED[kind.rstrip("12")]}"' for kind in ("body1", "site")), 'geom2="g"']
    more = '<actuator><motor name="a" joint="j"/></actuator>'
    return [element for kind in kinds for element in of(f"{more}<sensor><{name} {kind} @/></sensor>")]


def with_attribute(document: str, attribute: str) -> str:
    """The model with the attribute in the place of `@`, and not a second time in the same element."""
    value = WORDS.get(attribute, SWITCHES.get(attribute, "disable") if "<flag @" in document else NOTHING)
    element = next(part for part in document.split("<") if "@" in part)
    alone = re.sub(rf'\b{attribute}="[^"]*"', "", element)
    return document.replace(element, alone.replace("@", f'{attribute}="{value}"'))


@functools.cache
def loaded(document: str, folder: Path) -> Articulation | str:
    """The robot without what is only told of it; or why it is refused."""
    path = folder / "model.xml"
    path.write_text(document.replace("@", ""))
    try:
        robot = load_articulation(path)
    except ModelError as error:
        return str(error)
    return dataclasses.replace(robot, notes=(), ignored=(), text="", path="")


def what_becomes_of(path: tuple[str, ...], attribute: str, attributes: Collection[str], folder: Path) -> str:
    """`read`, `refused` or `without effect`, as the models with it show."""
    for document in documents(path, attributes):
        given = loaded(with_attribute(document, attribute), folder)
        if given != loaded(document, folder):
            return "refused" if isinstance(given, str) and "is not supported yet" in given else "read"
    return "without effect"


def files(folder: Path) -> None:
    """What the models name."""
    import trimesh

    trimesh.creation.box((1, 2, 3)).export(folder / "cube.stl")
    (folder / "child.xml").write_text(
        '<mujoco model="a"><option timestep="0.2"/><worldbody><frame name="fr"><body name="b"><geom size="1"/></body>'
        "</frame></worldbody></mujoco>"
    )
