"""The variables of the robot in an output."""

from __future__ import annotations

from artsim.io.format.variable import Variable, line

MODEL: dict[str, Variable] = {
    # the robot
    "model/source": line("", "1", "the robot's file, expanded, as simulated", dtype="str"),
    "model/link_parent": line("link", "1", "parent link; empty for a root", dtype="str"),
    "model/link_mass": line("link", "kg", "mass"),
    "model/joint_type": line("joint", "1", "kind of joint", dtype="str"),
    "model/joint_parent": line("joint", "1", "parent link", dtype="str"),
    "model/joint_child": line("joint", "1", "child link", dtype="str"),
    "model/joint_lower": line("joint", "rad or m", "lower position limit; -inf without one"),
    "model/joint_upper": line("joint", "rad or m", "upper position limit; inf without one"),
    "model/joint_effort": line("joint", "N m or N", "bound of drives and controllers; inf without one"),
    "model/joint_velocity": line("joint", "rad/s or m/s", "velocity limit; inf without one"),
    "model/mesh_uri": line("mesh", "1", "mesh as written in the robot's file", dtype="str"),
    "model/mesh_path": line("mesh", "1", "file it was resolved to; empty when it was not found", dtype="str"),
    "model/mesh_link": line("mesh", "1", "link it belongs to", dtype="str"),
    # the pieces as which meshes and height fields collide and are seen: convex, triangles, heights, each once
    "model/use_geom": line(
        "piece_use", "1", "geometry", "of the piece, numbered over all links in order, from 0", dtype="i4"
    ),
    "model/use_piece": line("piece_use", "1", "piece", "that is the geometry or a part of it", dtype="i4"),
    "model/use_seen": line(
        "piece_use", "1", "purpose of the use", "0: collision, 1: seen by rangefinders; absent: collision", dtype="i1"
    ),
    "model/piece_kind": line("piece", "1", "0 convex polyhedron, 1 triangles, 2 height field", dtype="i1"),
    "model/piece_vertices": line("piece", "1", "vertices", "of a height field: rows, along y", dtype="i4"),
    "model/piece_faces": line("piece", "1", "faces", "of a height field: columns, along x", dtype="i4"),
    "model/vertex_position": line("vertex xyz", "m", "vertex", "of each piece in turn, in the geometry's frame"),
    "model/face_corners": line("face", "1", "corners of a face", dtype="i4"),
    "model/corner_vertex": line(
        "corner",
        "1",
        "vertex",
        "of a face's corner, within its piece, from 0; counter-clockwise seen from outside",
        dtype="i4",
    ),
    "model/plane": line(
        "convex_face plane_entry",
        "1 (normal), m (distance)",
        "plane of a face",
        "of the convex pieces' faces: outward normal, distance from the frame's origin",
    ),
    "model/height": line("height_point", "m", "height", "of height fields, row by row, above their frame"),
}
