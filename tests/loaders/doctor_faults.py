"""A sound robot with a limb of every kind, and faults seeded into its text, with the findings that are wanted."""

from __future__ import annotations

from typing import NamedTuple

URDF = """<robot name="seeded">
<link name="base">
 <inertial><origin xyz="0 0 0.05"/><mass value="8"/>\
<inertia ixx="0.0333" ixy="0" ixz="0" iyy="0.0333" iyz="0" izz="0.0533"/></inertial>
 <visual><origin xyz="0 0 0.05"/><geometry><box size="0.2 0.2 0.1"/></geometry></visual>
 <collision><origin xyz="0 0 0.05"/><geometry><box size="0.2 0.2 0.1"/></geometry></collision>
</link>
<link name="upper">
 <inertial><origin xyz="0 0 0.2"/><mass value="2.5"/>\
<inertia ixx="0.0341" ixy="0" ixz="0" iyy="0.0341" iyz="0" izz="0.0020"/></inertial>
 <visual><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.04" length="0.4"/></geometry></visual>
 <collision><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.04" length="0.4"/></geometry></collision>
</link>
<link name="fore">
 <inertial><origin xyz="0.15 0 0" rpy="0 1.5707963 0"/><mass value="1.2"/>\
<inertia ixx="0.0096" ixy="0" ixz="0" iyy="0.0096" iyz="0" izz="0.0006"/></inertial>
 <visual><origin xyz="0.15 0 0" rpy="0 1.5707963 0"/><geometry><cylinder radius="0.03" length="0.3"/>\
</geometry></visual>
 <collision><origin xyz="0.15 0 0" rpy="0 1.5707963 0"/><geometry><cylinder radius="0.03" length="0.3"/>\
</geometry></collision>
</link>
<link name="left">
 <inertial><origin xyz="0.03 0 0"/><mass value="0.05"/>\
<inertia ixx="2e-6" ixy="0" ixz="0" iyy="1.6e-5" iyz="0" izz="1.6e-5"/></inertial>
 <visual><origin xyz="0.03 0 0"/><geometry><box size="0.06 0.015 0.015"/></geometry></visual>
 <collision><origin xyz="0.03 0 0"/><geometry><box size="0.06 0.015 0.015"/></geometry></collision>
</link>
<link name="right">
 <inertial><origin xyz="0.03 0 0"/><mass value="0.05"/>\
<inertia ixx="2e-6" ixy="0" ixz="0" iyy="1.6e-5" iyz="0" izz="1.6e-5"/></inertial>
 <visual><origin xyz="0.03 0 0"/><geometry><mesh filename="finger.obj"/></geometry></visual>
 <collision><origin xyz="0.03 0 0"/><geometry><mesh filename="finger.obj"/></geometry></collision>
</link>
<link name="wheel">
 <inertial><mass value="0.3"/><inertia ixx="2e-4" ixy="0" ixz="0" iyy="3.8e-4" iyz="0" izz="2e-4"/></inertial>
 <visual><origin rpy="1.5707963 0 0"/><geometry><cylinder radius="0.05" length="0.02"/></geometry></visual>
 <collision><origin rpy="1.5707963 0 0"/><geometry><cylinder radius="0.05" length="0.02"/></geometry></collision>
 <contact><lateral_friction value="1"/></contact>
</link>
<joint name="shoulder" type="revolute"><origin xyz="0 0 0.12"/><parent link="base"/><child link="upper"/>\
<axis xyz="0 1 0"/>
 <limit lower="-2" upper="2" effort="60" velocity="3"/></joint>
<joint name="elbow" type="revolute"><origin xyz="0.05 0 0.45"/><parent link="upper"/><child link="fore"/>\
<axis xyz="0 1 0"/>
 <limit lower="-2.5" upper="2.5" effort="30" velocity="4"/></joint>
<joint name="grip" type="prismatic"><origin xyz="0.32 0.02 0"/><parent link="fore"/><child link="left"/>\
<axis xyz="0 1 0"/>
 <limit lower="0" upper="0.03" effort="20" velocity="0.2"/></joint>
<joint name="grip_2" type="prismatic"><origin xyz="0.32 -0.02 0"/><parent link="fore"/><child link="right"/>\
<axis xyz="0 -1 0"/>
 <limit lower="0" upper="0.03" effort="20" velocity="0.2"/><mimic joint="grip" multiplier="1"/></joint>
<joint name="roll" type="continuous"><origin xyz="0 0.14 0.05"/><parent link="base"/><child link="wheel"/>\
<axis xyz="0 1 0"/>
 <limit effort="5" velocity="20"/></joint>
<gazebo reference="wheel"><selfCollide>true</selfCollide></gazebo>
<gazebo reference="upper"><selfCollide>true</selfCollide></gazebo>
</robot>
"""

FINGER = (0.06, 0.015, 0.015)  # sizes of finger.obj, a box [m]

MJCF = """<mujoco><option timestep="0.002"/><worldbody>
<geom name="floor" type="plane" size="2 2 .1"/>
<body name="trunk" pos="0 0 .3"><freejoint name="root"/><geom name="trunk" type="box" size=".2 .1 .05" density="900"/>
 <body name="leg" pos=".1 0 -.06"><joint name="hip" axis="0 1 0" range="-1 1" limited="true"/>
  <geom name="leg" type="capsule" fromto="0 0 0 0 0 -.2" size=".03" density="900"/></body>
 <body name="tail" pos="-.2 0 0"><joint name="wag" axis="0 0 1"/>
  <geom name="tail" type="capsule" fromto="-.06 0 0 -.2 0 0" size=".02" density="900"/></body>
</body></worldbody>
<actuator><position name="hip" joint="hip" kp="40" kv="1"/></actuator></mujoco>
"""


class Fault(NamedTuple):
    """A fault: the model, what is replaced in its text by what, and the code and the words that must be found."""

    name: str
    before: str
    after: str
    code: str
    words: str
    model: str = "urdf"


UPPER = '<mass value="2.5"/><inertia ixx="0.0341" ixy="0" ixz="0" iyy="0.0341" iyz="0" izz="0.0020"/>'
FORE = '<mass value="1.2"/><inertia ixx="0.0096" ixy="0" ixz="0" iyy="0.0096" iyz="0" izz="0.0006"/>'
HANG = """<link name="bead"><inertial><mass value="1e-7"/>\
<inertia ixx="1e-13" ixy="0" ixz="0" iyy="1e-13" iyz="0" izz="1e-13"/></inertial></link>
<joint name="cord" type="revolute"><origin xyz="-.3 0 0"/><parent link="base"/><child link="bead"/><axis xyz="1 0 0"/>
 <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<link name="bob"><inertial><mass value="0.5"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/>\
</inertial></link>
<joint name="swing" type="revolute"><parent link="bead"/><child link="bob"/><axis xyz="0 1 0"/>
 <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""
IDLE = """<link name="nothing"/><joint name="spare" type="revolute"><parent link="fore"/><child link="nothing"/>\
<axis xyz="0 0 1"/>
 <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""

FAULTS = (
    Fault("grams", UPPER, UPPER.replace("2.5", "2500"), "inertia-density", "link 'upper'"),
    Fault("a feather", UPPER, UPPER.replace("2.5", "0.0025"), "inertia-density", "link 'upper': 0.0025 kg in shapes"),
    Fault("a point that weighs", '"0.2 0.2 0.1"', '"0.004 0.004 0.004"', "inertia-density", "link 'base'"),
    Fault(
        "a slip of the decimal point", 'xyz="0 0 0.2"/><mass', 'xyz="0 0 2"/><mass', "inertia-centre", "link 'upper'"
    ),
    Fault(
        "a centre to the side",
        'xyz="0.15 0 0" rpy="0 1.5707963 0"/><mass',
        'xyz="0 0.15 0" rpy="0 1.5707963 0"/><mass',
        "inertia-centre",
        "'fore'",
    ),
    Fault(
        "y and z exchanged",
        'ixx="0.0341" ixy="0" ixz="0" iyy="0.0341" iyz="0" izz="0.0020"',
        'ixx="0.0341" ixy="0" ixz="0" iyy="0.0020" iyz="0" izz="0.0341"',
        "inertia-axes",
        "link 'upper'",
    ),
    Fault(
        "x and z exchanged",
        'ixx="0.0341" ixy="0" ixz="0" iyy="0.0341" iyz="0" izz="0.0020"',
        'ixx="0.0020" ixy="0" ixz="0" iyy="0.0341" iyz="0" izz="0.0341"',
        "inertia-axes",
        "link 'upper'",
    ),
    Fault(
        "about the origin",
        'ixx="0.0341" ixy="0" ixz="0" iyy="0.0341" iyz="0" izz="0.0020"',
        'ixx="0.1341" ixy="0" ixz="0" iyy="0.1341" iyz="0" izz="0.0020"',
        "inertia-frame",
        "origin of the link",
    ),
    Fault(
        "along the wrong axes",
        'ixx="0.0096" ixy="0" ixz="0" iyy="0.0096" iyz="0" izz="0.0006"',
        'ixx="0.0006" ixy="0" ixz="0" iyy="0.0096" iyz="0" izz="0.0096"',
        "inertia-frame",
        "axes of the link",
    ),
    Fault(
        "g mm²", UPPER, UPPER.replace("0.0341", "34100000").replace("0.0020", "2000000"), "inertia-unit", "in g mm²?"
    ),
    Fault("kg mm²", FORE, FORE.replace("0.0096", "9600").replace("0.0006", "600"), "inertia-unit", "in kg mm²?"),
    Fault(
        "a placeholder of 1",
        '<inertia ixx="2e-6" ixy="0" ixz="0" iyy="1.6e-5" iyz="0" izz="1.6e-5"/></inertial>\n '
        '<visual><origin xyz="0.03 0 0"/><geometry><box',
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>\n <visual><origin '
        'xyz="0.03 0 0"/><geometry><box',
        "inertia-unit",
        "link 'left'",
    ),
    Fault(
        "next to no inertia",
        UPPER,
        UPPER.replace("0.0341", "3.41e-6").replace("0.0020", "2e-7"),
        "inertia-small",
        "link 'upper'",
    ),
    Fault("a bead that carries", "</robot>", HANG, "mass-neighbours", "link 'bob', 0.5 kg, hangs on link 'bead'"),
    Fault("effort 0", 'effort="60"', 'effort="0"', "effort-zero", "joint 'shoulder'"),
    Fault("effort 0 of several", 'effort="20"', 'effort="0"', "effort-zero", "as 1 more"),
    Fault("velocity 0", 'velocity="4"', 'velocity="0"', "velocity-zero", "joint 'elbow'"),
    Fault(
        "limits above 0",
        'lower="-2" upper="2"',
        'lower="0.5" upper="2"',
        "limits-exclude-zero",
        "joint 'shoulder': 0 is not within its limits 0.5 … 2 rad",
    ),
    Fault(
        "limits below 0",
        'lower="-2.5" upper="2.5"',
        'lower="-2.5" upper="-0.3"',
        "limits-exclude-zero",
        "joint 'elbow'",
    ),
    Fault(
        "a follower that leaves nothing",
        'multiplier="1"',
        'multiplier="1" offset="0.5"',
        "limits-empty",
        "leave joint 'grip' no position",
    ),
    Fault(
        "a follower with another sign",
        'multiplier="1"',
        'multiplier="-1"',
        "mimic-unreachable",
        "leave joint 'grip' only 0 … 0 m",
    ),
    Fault("a follower that runs ahead", 'multiplier="1"', 'multiplier="2"', "mimic-unreachable", "only 0 … 0.015 m"),
    Fault(
        "links in each other",
        'xyz="0 0.14 0.05"',
        'xyz="0 0 0.3"',
        "neighbours-collide",
        "'upper' and 'wheel'",
    ),
    Fault(
        "legs in the trunk's tail",
        'fromto="-.06 0 0 -.2 0 0"',
        'fromto=".3 0 -.1 -.2 0 -.1"',
        "neighbours-collide",
        "'leg' and 'tail' overlap",
        "mjcf",
    ),
    Fault("stiff gains", 'kp="40"', 'kp="4e5"', "gains-shake", "actuator 'hip', kp", "mjcf"),
    Fault("damping gains", 'kv="1"', 'kv="400"', "gains-shake", "actuator 'hip', kv", "mjcf"),
    Fault(
        "rubber of another world",
        'lateral_friction value="1"',
        'lateral_friction value="1000"',
        "wheel-friction",
        "wheel 'wheel': friction 1000",
    ),
    Fault(
        "one name for two",
        '<joint name="elbow"',
        '<joint name="fore"',
        "duplicate-name",
        "'fore': the name of a link and of a joint",
    ),
    Fault("a mesh in mm", "finger.obj", "finger_mm.obj", "mesh-scale", "is it in mm?"),
    Fault(
        "a hollow mesh",
        '<collision><origin xyz="0.03 0 0"/><geometry><mesh filename="finger.obj"',
        '<collision><origin xyz="0.03 0 0"/><geometry><mesh filename="hook.obj"',
        "mesh-hull",
        "times its own",
    ),
    Fault("a joint of nothing", "</robot>", IDLE, "joint-idle", "joint 'spare' moves neither mass nor shapes"),
    Fault(
        "a locked joint",
        'lower="-2.5" upper="2.5"',
        'lower="0" upper="0"',
        "joint-idle",
        "joint 'elbow': lower = upper = 0, the joint is locked",
    ),
    Fault("dropped", 'pos="0 0 .3"', 'pos="0 0 1.3"', "base-in-air", "m above the ground", "mjcf"),
)
