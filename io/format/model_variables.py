"""The variables of the robot in an output."""

from __future__ import annotations

from artsim.io.format.variable import Variable

MODEL: dict[str, Variable] = {
    # the robot
    "model/source": Variable((), "1", "the robot's file, expanded, as simulated", "str"),
    "model/link_parent": Variable(("link",), "1", "parent link; empty for a root", "str"),
    "model/link_mass": Variable(("link",), "kg", "mass"),
    "model/joint_type": Variable(("joint",), "1", "kind of joint", "str"),
    "model/joint_parent": Variable(("joint",), "1", "parent link", "str"),
    "model/joint_child": Variable(("joint",), "1", "child link", "str"),
    "model/joint_lower": Variable(("joint",), "rad or m", "lower position limit; -inf without one"),
    "model/joint_upper": Variable(("joint",), "rad or m", "upper position limit; inf without one"),
    "model/joint_effort": Variable(("joint",), "N m or N", "bound of drives and controllers; inf without one"),
    "model/joint_velocity": Variable(("joint",), "rad/s or m/s", "velocity limit; inf without one"),
    "model/mesh_uri": Variable(("mesh",), "1", "mesh as written in the robot's file", "str"),
    "model/mesh_path": Variable(("mesh",), "1", "file it was resolved to; empty when it was not found", "str"),
    "model/mesh_link": Variable(("mesh",), "1", "link it belongs to", "str"),
    # the pieces as which meshes and height fields collide and are seen: convex, triangles, heights, each once
    "model/use_geom": Variable(
        ("piece_use",), "1", "geometry", "i4", comment="of the piece, numbered over all links in order, from 0"
    ),
    "model/use_piece": Variable(("piece_use",), "1", "piece", "i4", comment="that is the geometry or a part of it"),
    "model/use_seen": Variable(
        ("piece_use",),
        "1",
        "purpose of the use",
        "i1",
        comment="0: collision, 1: seen by rangefinders; absent: collision",
    ),
    "model/piece_kind": Variable(("piece",), "1", "0 convex polyhedron, 1 triangles, 2 height field", "i1"),
    "model/piece_vertices": Variable(("piece",), "1", "vertices", "i4", comment="of a height field: rows, along y"),
    "model/piece_faces": Variable(("piece",), "1", "faces", "i4", comment="of a height field: columns, along x"),
    "model/vertex_position": Variable(
        ("vertex", "xyz"), "m", "vertex", comment="of each piece in turn, in the geometry's frame"
    ),
    "model/face_corners": Variable(("face",), "1", "corners of a face", "i4"),
    "model/corner_vertex": Variable(
        ("corner",),
        "1",
        "vertex",
        "i4",
        comment="of a face's corner, within its piece, from 0; counter-clockwise seen from outside",
    ),
    "model/plane": Variable(
        ("convex_face", "plane_entry"),
        "1 (normal), m (distance)",
        "plane of a face",
        comment="of the convex pieces' faces: outward normal, distance from the frame's origin",
    ),
    "model/height": Variable(
        ("height_point",), "m", "height", comment="of height fields, row by row, above their frame"
    ),
}
