"""Robots whose inverse kinematics is tried: with closed forms, with followers, with loops."""

from __future__ import annotations

LINK = '<inertial><mass value="1"/><inertia ixx=".01" ixy="0" ixz="0" iyy=".01" iyz="0" izz=".01"/></inertial>'


def planar_arm(*lengths: float, limit: float = 3.1) -> str:
    """An arm in the plane, of links along x that turn about z."""
    parts = [f'<link name="base">{LINK}</link>']
    x = 0.0
    for n, length in enumerate(lengths):
        parts.append(
            f'<link name="l{n}">{LINK}</link><joint name="j{n}" type="revolute"><origin xyz="{x} 0 0"/>'
            f'<parent link="{"base" if n == 0 else f"l{n - 1}"}"/><child link="l{n}"/><axis xyz="0 0 1"/>'
            f'<limit lower="{-limit}" upper="{limit}" effort="1" velocity="2"/></joint>'
        )
        x = length
    parts.append(
        f'<link name="tip">{LINK}</link><joint name="tip" type="fixed"><origin xyz="{x} 0 0"/>'
        f'<parent link="l{len(lengths) - 1}"/><child link="tip"/></joint>'
    )
    return f'<robot name="planar">{"".join(parts)}</robot>'


SCARA = f"""<robot name="scara"><link name="base">{LINK}</link>
  <link name="arm">{LINK}</link><link name="forearm">{LINK}</link><link name="quill">{LINK}</link>
  <link name="tool">{LINK}</link>
  <joint name="j1" type="revolute"><origin xyz="0 0 .4"/><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-2.6" upper="2.6" effort="1" velocity="1"/></joint>
  <joint name="j2" type="revolute"><origin xyz=".3 0 0"/><parent link="arm"/><child link="forearm"/><axis xyz="0 0 1"/>
    <limit lower="-2.6" upper="2.6" effort="1" velocity="1"/></joint>
  <joint name="j3" type="prismatic"><origin xyz=".25 0 0"/><parent link="forearm"/><child link="quill"/>
    <axis xyz="0 0 -1"/><limit lower="0" upper=".2" effort="1" velocity="1"/></joint>
  <joint name="j4" type="continuous"><parent link="quill"/><child link="tool"/><axis xyz="0 0 1"/></joint>
</robot>"""

MIMIC_ARM = f"""<robot name="mimic_arm"><link name="base">{LINK}</link>
  {"".join(f'<link name="{name}">{LINK}</link>' for name in ("a", "b", "c", "d", "e", "palm", "left", "right"))}
  <joint name="a" type="revolute"><origin xyz="0 0 .3"/><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-2.9" upper="2.9" effort="1" velocity="1"/></joint>
  <joint name="b" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="1" velocity="1"/></joint>
  <joint name="c" type="revolute"><origin xyz="0 0 .35"/><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
    <limit lower="-2.4" upper="2.4" effort="1" velocity="1"/></joint>
  <joint name="d" type="revolute"><origin xyz="0 0 .3"/><parent link="c"/><child link="d"/><axis xyz="0 0 1"/>
    <limit lower="-2.9" upper="2.9" effort="1" velocity="1"/></joint>
  <joint name="e" type="revolute"><parent link="d"/><child link="e"/><axis xyz="0 1 0"/>
    <limit lower="-1.9" upper="1.9" effort="1" velocity="1"/></joint>
  <joint name="palm" type="revolute"><origin xyz="0 0 .1"/><parent link="e"/><child link="palm"/><axis xyz="0 0 1"/>
    <limit lower="-2.9" upper="2.9" effort="1" velocity="1"/></joint>
  <joint name="left" type="prismatic"><origin xyz="0 .01 .08"/><parent link="palm"/><child link="left"/>
    <axis xyz="0 1 0"/><limit lower="0" upper=".04" effort="1" velocity="1"/></joint>
  <joint name="right" type="prismatic"><origin xyz="0 -.01 .08"/><parent link="palm"/><child link="right"/>
    <axis xyz="0 -1 0"/><limit lower="0" upper=".03" effort="1" velocity="1"/><mimic joint="left"/></joint>
</robot>"""
"""An arm whose fingers open together, the right one less far than the left one could."""

EXCAVATOR = """<mujoco model="excavator"><option gravity="0 0 -9.81"/><default><geom density="500"/>
  <joint damping="1"/></default><worldbody>
  <body name="house" pos="0 0 .5"><joint name="swing" axis="0 0 1" range="-180 180" limited="true"/>
    <geom type="box" size=".3 .3 .2"/>
    <body name="boom" pos=".3 0 .2"><joint name="boom" axis="0 -1 0" range="-40 70" limited="true"/>
      <geom type="capsule" fromto="0 0 0 2 0 0" size=".05"/><site name="boom_eye" pos=".9 0 -.1"/>
      <body name="stick" pos="2 0 0"><joint name="stick" axis="0 -1 0" range="-150 -25" limited="true"/>
        <geom type="capsule" fromto="0 0 0 1.2 0 0" size=".04"/><site name="stick_eye" pos="-.3 0 .1"/>
        <body name="bucket" pos="1.2 0 0"><joint name="bucket" axis="0 -1 0" range="-130 40" limited="true"/>
          <geom type="box" size=".2 .15 .1" pos=".2 0 0"/><body name="tooth" pos=".4 0 0"><geom size=".01"/></body>
        </body></body>
      <body name="stick_barrel" pos=".9 0 .2"><joint name="stick_barrel" axis="0 -1 0"/>
        <geom type="capsule" fromto="0 0 0 .6 0 0" size=".03"/>
        <body name="stick_rod"><joint name="stick_rod" type="slide" axis="1 0 0" range=".7 1.7" limited="true"/>
          <geom type="capsule" fromto="-.5 0 0 0 0 0" size=".02"/><site name="stick_rod"/></body></body></body>
    <body name="boom_barrel" pos=".45 0 -.1"><joint name="boom_barrel" axis="0 -1 0"/>
      <geom type="capsule" fromto="0 0 0 .6 0 0" size=".03"/>
      <body name="boom_rod"><joint name="boom_rod" type="slide" axis="1 0 0" range=".4 1.2" limited="true"/>
        <geom type="capsule" fromto="-.5 0 0 0 0 0" size=".02"/><site name="boom_rod"/></body></body></body>
</worldbody><equality>
  <connect name="boom_pin" site1="boom_rod" site2="boom_eye"/>
  <connect name="stick_pin" site1="stick_rod" site2="stick_eye"/>
</equality></mujoco>"""
