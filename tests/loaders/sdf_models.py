"""SDF models written by hand, which together use every rule of frames and every kind of joint.

`python -m tests.loaders.sdf_models` in an environment with pydrake writes what Drake's parser makes of them into
sdf_drake.json: poses, masses, mass matrix and gravity at one configuration, which test_sdf.py compares with.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DRAKE = Path(__file__).with_name("sdf_drake.json")


def inertial(mass: float, centre: str = "0 0 0 0 0 0", moments: str = "0.01 0.02 0.025 0.001 -0.002 0.003") -> str:
    """<inertial>: ixx iyy izz ixy ixz iyz."""
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    tensor = "".join(f"<{name}>{value}</{name}>" for name, value in zip(names, moments.split(), strict=True))
    return f"<inertial><mass>{mass}</mass><pose>{centre}</pose><inertia>{tensor}</inertia></inertial>"


FRAMES = f"""<sdf version="1.11"><model name="frames" canonical_link="upper">
  <pose>0.1 0.2 0.3 0.4 0.5 0.6</pose>
  <frame name="bench"><pose degrees="true">0.5 0 0.1 0 0 90</pose></frame>
  <frame name="tip" attached_to="upper"><pose>0.4 0.1 0 0.2 0 0</pose></frame>
  <frame name="beyond" attached_to="shoulder"><pose relative_to="tip">0 0 0.05 0 0.3 0</pose></frame>
  <link name="base"><pose relative_to="bench">0 0 0.2 0.1 0 0</pose>{inertial(3.0, "0.01 0 0.02 0.3 0 0")}</link>
  <link name="upper"><pose relative_to="shoulder">0.05 0 0 0 0.1 0</pose>{inertial(2.0, "0.2 0 0 0 0.4 0")}</link>
  <link name="fore"><pose relative_to="beyond" rotation_format="quat_xyzw">0 0.1 0 0 0.6 0 0.8</pose>
    {inertial(1.0, "0.1 0.02 0 0 0 0.5")}</link>
  <link name="hand"><pose relative_to="fore">0.3 0 0 0 0 0</pose>{inertial(0.5)}</link>
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="shoulder" type="revolute"><pose relative_to="base">0 0 0.3 0 0 0.2</pose>
    <parent>base</parent><child>upper</child><axis><xyz expressed_in="bench">0 0.6 0.8</xyz>
    <limit><lower>-1.5</lower><upper>1.2</upper><effort>30</effort><velocity>2</velocity></limit>
    <dynamics><damping>0.3</damping><friction>0.1</friction></dynamics></axis></joint>
  <joint name="elbow" type="continuous"><pose>-0.1 0 0.02 0 0.2 0</pose><parent>tip</parent><child>fore</child>
    <axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="reach" type="prismatic"><parent>fore</parent><child>hand</child>
    <axis><xyz expressed_in="__model__">1 0 0</xyz><limit><lower>-0.2</lower></limit></axis></joint>
</model></sdf>"""

KINDS = f"""<sdf version="1.10"><model name="kinds">
  <link name="body">{inertial(4.0, "0 0 0.1 0.1 0.2 0.3")}</link>
  <link name="cross"><pose>0.5 0 0 0 0 0.3</pose>{inertial(1.0, "0.1 0 0 0 0 0")}</link>
  <link name="bolt"><pose>0 0.5 0.1 0.2 0 0</pose>{inertial(0.7)}</link>
  <link name="globe"><pose>0 0 0.6 0 0 0</pose>{inertial(0.9, "0 0 0.2 0 0 0")}</link>
  <link name="stuck"><pose>-0.4 0 0 0 0.7 0</pose>{inertial(0.6, "0 0.1 0 0 0 0")}</link>
  <joint name="cardan" type="universal"><pose>-0.1 0 0 0 0.2 0</pose><parent>body</parent><child>cross</child>
    <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
  <joint name="thread" type="screw"><pose>0 0 0.1 0 0 0</pose><parent>body</parent><child>bolt</child>
    <axis><xyz>0 0.6 0.8</xyz></axis><screw_thread_pitch>0.05</screw_thread_pitch></joint>
  <joint name="socket" type="ball"><pose>0 0 -0.2 0 0 0</pose><parent>body</parent><child>globe</child></joint>
  <joint name="weld" type="fixed"><parent>body</parent><child>stuck</child></joint>
</model></sdf>"""

WORLD = f"""<sdf version="1.9"><world name="shop">
  <gravity>0 0 -9.81</gravity>
  <frame name="table"><pose>1 2 0.8 0 0 0.5</pose></frame>
  <model name="floor"><static>true</static><link name="slab">{inertial(10.0)}</link></model>
  <model name="cell" placement_frame="foot"><pose relative_to="table">0.1 0 0 0 0 0</pose>
    <frame name="foot" attached_to="post"><pose>0 0 -0.5 0 0.1 0</pose></frame>
    <link name="post">{inertial(5.0)}</link>
    <model name="arm"><pose relative_to="foot">0 0 1 0 0.3 0</pose>
      <link name="boom"><pose>0.2 0 0 0 0 0</pose>{inertial(1.5, "0.1 0 0 0 0 0")}</link>
      <link name="jib"><pose relative_to="boom">0.4 0 0 0 0 0.4</pose>{inertial(0.8, "0.1 0 0 0 0 0")}</link>
      <joint name="luff" type="revolute"><parent>boom</parent><child>jib</child><axis><xyz>0 1 0</xyz></axis></joint>
    </model>
    <joint name="slew" type="revolute"><pose>-0.2 0 0 0 0 0</pose><parent>post</parent><child>arm</child>
      <axis><xyz expressed_in="foot">0 0 1</xyz></axis></joint>
  </model>
  <joint name="bolted" type="fixed"><parent>floor::slab</parent><child>cell</child></joint>
</world></sdf>"""

SHAPES = f"""<sdf version="1.6"><world name="w"><gravity>0 0 -9.8</gravity>
  <physics type="ode"><max_step_size>0.002</max_step_size></physics><light name="sun" type="directional"/>
  <model name="m"><self_collide>true</self_collide><plugin name="p" filename="libp.so"/>
    <link name="a"><gravity>false</gravity><velocity_decay><linear>0.1</linear></velocity_decay>
      <inertial auto="true"><density>500</density></inertial>
      <collision name="c"><pose frame="">0 0 0.1 0 0 0</pose><geometry><box><size>0.1 0.2 0.3</size></box></geometry>
        <surface><friction><ode><mu>0.4</mu><mu2>0.5</mu2></ode><torsional><patch_radius>0.1</patch_radius></torsional>
        </friction><bounce><restitution_coefficient>0.2</restitution_coefficient></bounce>
        <contact><collide_bitmask>0x0F</collide_bitmask><ode><kp>1e6</kp></ode></contact></surface></collision>
      <collision name="d"><geometry><mesh><uri>model://m/d.stl</uri><scale>1 1 1</scale></mesh></geometry></collision>
      <visual name="v"><geometry><plane><normal>0 0 1</normal><size>2 2</size></plane></geometry>
        <material><diffuse>1 0 0 1</diffuse></material></visual><sensor name="s" type="imu"/></link>
    <link name="b"><kinematic>0</kinematic>{inertial(1.0)}</link>
    <link name="c">{inertial(1.0)}</link>
    <joint name="j" type="revolute2"><parent>a</parent><child>b</child><axis><xyz>1 0 0</xyz>
      <use_parent_model_frame>true</use_parent_model_frame><dynamics><spring_stiffness>3</spring_stiffness></dynamics>
      </axis><axis2><xyz>0 1 0</xyz></axis2></joint>
    <joint name="k" type="revolute"><parent>a</parent><child>c</child><axis><xyz>0 0 1</xyz><limit><lower>-1</lower>
      </limit><mimic joint="j" axis="axis2"><multiplier>2</multiplier></mimic></axis></joint>
    <joint name="l" type="ball"><parent>b</parent><child>c</child></joint>
  </model></world></sdf>"""

SURFACES = """<sdf version="1.12"><world name="w"><include><uri>model://ground_plane</uri><name>floor</name></include>
  <include><uri>model://sun</uri></include>
  <model name="m"><link name="a"><inertial><pose relative_to="a">0 0 0.1 0 0 0</pose><mass>1</mass></inertial>
    <collision name="c"><geometry><sphere><radius>0.1</radius></sphere></geometry><surface><contact>
      <category_bitmask>0x3</category_bitmask><collide_bitmask>2</collide_bitmask>
      <collide_without_contact>false</collide_without_contact></contact>
      <friction><ode><mu>-1</mu><slip1>0.1</slip1></ode></friction></surface></collision>
    <visual name="v"><geometry><polyline/><polyline/></geometry></visual></link>
    <model name="n"><link name="b"/><frame name="f" attached_to="b"/></model>
    <joint name="j" type="fixed"><parent>a</parent><child>n::f</child></joint></model></world></sdf>"""

MODELS = {"frames": FRAMES, "kinds": KINDS, "world": WORLD}
ANGLES = {
    "frames": {"shoulder": 0.4, "elbow": -0.7, "reach": 0.13},
    "kinds": {"cardan": 0.3, "cardan.axis2": -0.5, "thread": 2.5},
    "world": {"cell::arm::luff": 0.6, "cell::slew": -0.9},
}
"""Where Drake was asked: other coordinates are those of the file."""


def drake_values(text: str, angles: dict[str, float]) -> dict[str, Any]:
    """What Drake makes of a model: at the file's pose and at the angles, names as artsim has them."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import BodyIndex

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(text, "sdf")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    bodies = [plant.get_body(BodyIndex(n)) for n in range(1, plant.num_bodies())]

    def named(item: Any) -> str:
        scope = str(plant.GetModelInstanceName(item.model_instance()))
        return f"{scope}::{item.name()}".removeprefix("frames::").removeprefix("kinds::")

    def poses() -> dict[str, list[float]]:
        return {named(b): plant.EvalBodyPoseInWorld(context, b).GetAsMatrix34().ravel().tolist() for b in bodies}

    joints = {joint.name(): joint for joint in map(plant.get_joint, plant.GetJointIndices())}
    asked = [(joints[name.removesuffix(".axis2").rpartition("::")[2]], name.endswith(".axis2")) for name in angles]
    values: dict[str, Any] = {"mass": {named(b): b.default_mass() for b in bodies}, "poses": poses()}
    q = plant.GetPositions(context)
    for (joint, second), angle in zip(asked, angles.values(), strict=True):
        q[joint.position_start() + second] = angle
    plant.SetPositions(context, q)
    values["moved"] = poses()
    order = [joint.velocity_start() + second for joint, second in asked]
    M = plant.CalcMassMatrixViaInverseDynamics(context)
    gravity = -plant.CalcGravityGeneralizedForces(context)
    return values | {"mass_matrix": M[order][:, order].tolist(), "gravity": gravity[order].tolist()}


if __name__ == "__main__":
    found = {name: drake_values(text, ANGLES[name]) for name, text in MODELS.items()}
    DRAKE.write_text(json.dumps(found, indent=1) + "\n")
