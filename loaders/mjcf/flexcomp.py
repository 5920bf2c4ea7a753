"""<flexcomp>: points with mass that slide, tied to each other along edges; made into bodies, sites and tendons.

MuJoCo's edges are springs and dampers along the line between two points, and equalities of its length, as are spatial
tendons. Bending and stretching by finite elements (elasticity, strain) and motion by interpolation are not supported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

from lxml import etree

from artsim.loaders.assets import AssetMissingError, AssetRefusedError
from artsim.loaders.elements import Element, child, children, tag
from artsim.loaders.mjcf.asset import located
from artsim.loaders.mjcf.compiler import Compiler
from artsim.loaders.mjcf.flex_box import flex_box
from artsim.loaders.mjcf.orientation import Angles, read_frame
from artsim.loaders.mjcf.reading import MOST, Item, MjcfReading, describe, dict_of
from artsim.sim.articulation.description import Pose, Vector3
from artsim.sim.articulation.pose_algebra import compose

GRIDS = ("grid", "circle", "square", "disc")
TYPES = (*GRIDS, "box", "cylinder", "ellipsoid", "mesh", "gmsh", "direct")
SHELLS = ("box", "cylinder", "ellipsoid")
FILES = ("gmsh", "mesh")
ELASTIC = ("vert", "strain")  # constraints of flexes, which are not supported
DOFS: dict[str, tuple[int, ...]] = {"full": (0, 1, 2), "2d": (0, 1), "radial": (0,)}
LATER = ("trilinear", "quadratic")
TETRAHEDRA = ((0, 3, 1, 7), (0, 1, 4, 7), (1, 3, 2, 7), (1, 2, 6, 7), (1, 5, 4, 7), (1, 6, 5, 7))  # of a cube's corners
TINY = 1e-15  # MuJoCo's mjMINVAL [m³]
Points = list[Vector3]
Edge = tuple[int, int]


def expand_flexcomps(reading: MjcfReading, root: Element, angles: Angles) -> None:
    """Replace every <flexcomp> by bodies, sites and tendons."""
    for world in children(root, "worldbody"):
        for element in list(world.iter("flexcomp")):
            expand_flexcomp(Item(reading, element, dict_of(element)), root, angles)
            parent = element.getparent()
            assert parent is not None
            parent.remove(element)


def expand_flexcomp(item: Item, root: Element, angles: Angles) -> None:
    """Add the bodies, sites and tendons of one <flexcomp>; a rigid one, which only collides, adds nothing."""
    if not item.text("name"):
        item.refuse("has no 'name' attribute")
    note_contact(item)
    if item.flag("rigid"):
        return
    missing = unsupported(item)
    if missing:
        item.reading.later(item.element, missing)
        return
    points, elements, pinned = used_only(item, *shape(item))
    edges = sorted({pair for corners in elements for pair in combinations(sorted(corners), 2)})
    item.reading.claim(item.element, 6 * len(points) + 3 * len(edges))
    place, body = item.element, item.element.getparent()
    while body is not None and tag(body) == "frame":  # MuJoCo does not apply the pose of the <frame> here
        place, body = body, body.getparent()
    assert body is not None
    if not pinned and any(tag(below) in ("joint", "freejoint") for below in body):
        item.refuse("its body moves, and none of its points is pinned to it")
    before = len(body)
    add_points(item, body, points, pinned, read_frame(item, angles))
    for made in list(body)[before:]:
        place.addprevious(made)
    add_edges(item, root, [edge for edge in edges if not pinned.issuperset(edge)], points)
    item.reading.flexes.append(item.text("name"))


def note_contact(item: Item) -> None:
    """Warn of a flexcomp that collides in the file, since its points and elements collide with nothing here."""
    contact = child(item.reading, item.element, "contact")
    bits = Item(item.reading, item.element if contact is None else contact, {} if contact is None else dict_of(contact))
    if bits.whole("contype", 1) or bits.whole("conaffinity", 1):
        what = f"{describe(item.element)}: its points and elements touch nothing yet"
        once = f"flex contact {item.text('name')}"
        item.reading.note(item.element, what, guess=True, once=once, left_out=True)


def read_point_files(reading: MjcfReading, root: Element, compiler: Compiler) -> bool:
    """Put points and elements of Gmsh and mesh files into the flexcomps that name the files, as if listed there.

    True if there are any. Raises ModelError for a file that may not be read, is absent or damaged.
    """
    found = False
    for world in children(root, "worldbody"):
        for element in world.iter("flexcomp"):
            item = Item(reading, element, dict_of(element))
            if item.text("type") in FILES and not item.flag("rigid") and not unsupported(item):
                list_points(item, compiler)
                found = True
    return found


def list_points(item: Item, compiler: Compiler) -> None:
    """Put the points and elements of the file in place of its name; the kind of elements sets dim."""
    from artsim.collision.gmsh import read_gmsh
    from artsim.collision.mesh import MAX_FACES, MeshError, read_mesh

    uri = item.text("file").replace("\\", "/")
    if not uri:
        item.refuse("has no 'file' attribute")
    try:
        path = located(item, uri, compiler)
        most = MAX_FACES if item.reading.max_faces is None else item.reading.max_faces
        if item.text("type") == "mesh":
            mesh = read_mesh(path, max_faces=min(most, MOST))
            points, elements = of_mesh(item, mesh.vertices, mesh.faces)
        else:
            points, elements = read_gmsh(path, min(most, MOST))
    except (AssetMissingError, AssetRefusedError) as error:
        item.refuse(f"file {uri!r}: {error}")
    except MeshError as error:
        item.refuse(f"file {error}")
    element = item.element
    element.attrib.pop("file")
    element.set("type", "direct")
    element.set("dim", str(elements.shape[1] - 1))
    element.set("point", numbers(points.ravel().tolist()))
    element.set("element", numbers(elements.ravel().tolist()))


def of_mesh(item: Item, vertices: Any, faces: Any) -> tuple[Any, Any]:
    """Points (n, 3) and elements: a mesh's triangles, or tetrahedra over the triangles that face away from `origin`."""
    import numpy as np

    dim = item.whole("dim", 2)
    points = vertices.astype(np.float32).astype(float)  # as MuJoCo holds them
    if dim == 1:
        return points, faces[:, :2]
    if dim == 2:
        return points, faces
    origin = np.array(item.vector("origin", (0.0, 0.0, 0.0)))
    corners = points[faces] - origin
    outward = np.linalg.det(corners) >= TINY if len(faces) else np.zeros(0, bool)
    return np.vstack([origin, points]), np.insert(faces[outward] + 1, 0, 0, axis=1)


def unsupported(item: Item) -> str:
    """The features of this flexcomp that are not supported; '' if there are none."""
    edge = child(item.reading, item.element, "edge")
    if child(item.reading, item.element, "elasticity") is not None:
        return "elasticity"
    if child(item.reading, item.element, "plugin") is not None:
        return "a plugin"
    if item.word("dof", (*DOFS, *LATER), "full") in LATER:
        return f"dof {item.text('dof')!r}"
    if item.has("mesh"):
        return "a mesh of <asset>"
    if item.word("type", TYPES, "grid") in SHELLS and item.whole("dim", 2) == 1:
        return f"type {item.text('type')!r} of dim 1"
    if edge is not None:
        method = Item(item.reading, edge, dict_of(edge)).word("equality", ("true", "false", *ELASTIC), "false")
        return f"edge equality {method!r}" if method in ELASTIC else ""
    return ""


def shape(item: Item) -> tuple[Points, list[Sequence[int]]]:
    """Points [m], and the corners of elements: edges, triangles or tetrahedra."""
    kind = item.text("type", "grid")
    dim = 2 if kind in ("square", "disc") else item.whole("dim", 2)
    if not 1 <= dim <= 3:
        item.refuse(f"dim is {dim}, want 1, 2 or 3")
    if kind == "direct":
        return direct(item, dim)
    if item.has("point"):
        item.refuse(f"point is for type direct: before the points of type {kind!r} it would shift their elements")
    counts = [int(x) for x in item.filled("count", (10.0, 10.0, 10.0))]
    spacing = item.vector("spacing", (0.02, 0.02, 0.02))
    if min(counts) < 1 or min(spacing) <= 0:
        item.refuse("count and spacing must be positive")
    if math.prod(counts) > MOST:
        item.refuse(f"count is beyond the limit of {MOST} points")
    if kind == "circle":
        return circle(item, counts[0], spacing[0])
    if kind in SHELLS:
        if min(counts) < 2:
            item.refuse("count is too small: want 2 and more along each axis")
        return flex_box(kind, dim, counts, spacing)
    points, elements = grid(dim, counts[:dim], spacing, disc=kind == "disc")
    if not elements:
        item.refuse("count is too small: it makes no elements")
    return points, elements


def direct(item: Item, dim: int) -> tuple[Points, list[Sequence[int]]]:
    """Points and elements listed in the flexcomp."""
    numbers, corners = item.numbers("point", 3, 3 * MOST), item.numbers("element", dim + 1, 4 * MOST)
    if len(numbers) % 3 or len(corners) % (dim + 1):
        item.refuse(f"point and element hold {len(numbers)} and {len(corners)} numbers, want threes and {dim + 1}s")
    a, b, c = item.vector("scale", (1.0, 1.0, 1.0))
    points = [(a * x, b * y, c * z) for x, y, z in zip(*[iter(numbers)] * 3, strict=True)]
    if not all(0 <= corner < len(points) for corner in corners):
        item.refuse(f"an element has a point that does not exist; there are {len(points)}")
    return points, [[int(corner) for corner in some] for some in zip(*[iter(corners)] * (dim + 1), strict=True)]


def used_only(item: Item, points: Points, elements: list[Sequence[int]]) -> tuple[Points, list[list[int]], set[int]]:
    """The points that elements use, the elements, and the pinned points; <pin> numbers the unused points, too."""
    pinned = read_pins(item, points)
    if any(len(set(some)) < len(some) for some in elements):
        item.refuse("an element has a point twice")
    used = {corner: number for number, corner in enumerate(sorted({corner for some in elements for corner in some}))}
    return (
        [points[corner] for corner in used],
        [[used[corner] for corner in some] for some in elements],
        {used[corner] for corner in pinned if corner in used},
    )


def circle(item: Item, count: int, spacing: float) -> tuple[Points, list[Sequence[int]]]:
    """A closed polygon with sides of length `spacing`."""
    around = count - 1
    if around < 2:
        item.refuse(f"count is {count}, want at least 3 for a circle")
    step = 2 * math.pi / around
    radius = spacing / math.sin(step / 2) / 2
    points = [(radius * math.cos(step * i), radius * math.sin(step * i), 0.0) for i in range(around)]
    return points, [(i, (i + 1) % around) for i in range(around)]


def grid(dim: int, counts: Sequence[int], spacing: Vector3, *, disc: bool) -> tuple[Points, list[Sequence[int]]]:
    """Points [m] about the origin, the last coordinate fastest, and cells cut into edges, triangles or tetrahedra."""
    strides = [math.prod(counts[k + 1 :]) for k in range(dim)]
    points: Points = []
    elements: list[Sequence[int]] = []
    for place in product(*map(range, counts)):
        x, y, z = [spacing[k] * (place[k] - 0.5 * (counts[k] - 1)) for k in range(dim)] + [0.0] * (3 - dim)
        points.append((x, y, z))
        if any(place[k] == counts[k] - 1 for k in range(dim)):
            continue
        first = sum(i * stride for i, stride in zip(place, strides, strict=True))
        elements += cell(dim, first, strides, flipped=disc and ((x < -1e-14) != (y < -1e-14)))
    return ([on_disc(point, counts, spacing) for point in points] if disc else points), elements


def cell(dim: int, first: int, strides: Sequence[int], *, flipped: bool) -> list[Sequence[int]]:
    """The elements of the cell whose first corner is point number `first`."""
    if dim == 1:
        return [(first, first + 1)]
    a, b = strides[0], strides[1]
    square = (first, first + a, first + a + b, first + b)
    if dim == 2:
        triangles = ((0, 1, 3), (1, 2, 3)) if flipped else ((0, 1, 2), (0, 2, 3))
        return [[square[i] for i in corners] for corners in triangles]
    cube = (*square, *(corner + 1 for corner in square))
    return [[cube[i] for i in corners] for corners in TETRAHEDRA]


def on_disc(point: Vector3, counts: Sequence[int], spacing: Vector3) -> Vector3:
    """A square's point moved along its ray onto a disc."""
    x, y, z = point
    length, side = math.hypot(x, y), max(abs(x), abs(y))
    if length < 1e-14:
        return point
    width, height = (0.5 * spacing[k] * (counts[k] - 1) for k in range(2))
    return (x / length * width * side, y / length * height * side, z)


def read_pins(item: Item, points: Points) -> set[int]:
    """The numbers of points that are fixed in the parent."""
    pinned = {0} if item.text("dof") == "radial" else set()  # its centre
    for element in children(item.element, "pin"):
        pin = Item(item.reading, element, dict_of(element))
        if pin.has("grid") or pin.has("gridrange"):
            pin.reading.later(element, "a pin by grid")
        single, ranges = (pin.numbers(name, 0, MOST, ()) for name in ("id", "range"))
        chosen = {int(i) for i in single}
        for start, end in zip(ranges[::2], ranges[1::2], strict=False):
            if start <= end and not 0 <= start <= end < len(points):
                pin.refuse(f"a point that does not exist; there are {len(points)}")
            chosen.update(range(int(start), int(end) + 1))
        if not all(0 <= i < len(points) for i in chosen):
            pin.refuse(f"a point that does not exist; there are {len(points)}")
        pinned |= chosen
    return pinned


def add_points(item: Item, body: Element, points: Points, pinned: set[int], frame: Pose) -> None:
    """Add a body with slides along `dof` and a site for each point; for a pinned point only the site, in the parent."""
    mass, half = item.number("mass", 1.0), item.number("inertiabox", 0.005)
    if mass <= 0 or half <= 0:
        item.refuse("mass and inertiabox must be positive")
    each = mass / len(points)
    moment = each * (2.0 * half * half) / 3.0
    for index, point in enumerate(points):
        name, position = f"{item.text('name')}_{index}", numbers(compose(frame, Pose(point)).position)
        if index in pinned:
            item.reading.classless[add(item, body, "site", name=name, pos=position)] = True
            continue
        made = add(item, body, "body", name=name, pos=position)
        add(item, made, "inertial", pos="0 0 0", mass=repr(each), diaginertia=numbers((moment,) * 3))
        if item.text("dof") == "radial":
            add(item, made, "joint", type="slide", axis=position)
        else:
            for k in DOFS[item.text("dof", "full")]:
                add(item, made, "joint", type="slide", axis=numbers([float(k == axis) for axis in range(3)]))
        item.reading.classless[add(item, made, "site", name=name)] = True


def add_edges(item: Item, root: Element, edges: Sequence[Edge], points: Points) -> None:
    """Add a tendon for each edge, and an equality of its length if the file has one."""
    edge = child(item.reading, item.element, "edge")
    if edge is None:
        return
    forces = {name: edge.get(name, "0") for name in ("stiffness", "damping")}
    holds = edge.get("equality", "false") == "true"
    if not holds and all(Item(item.reading, edge, forces).number(name) == 0 for name in forces):
        return
    holds_springs = Item(item.reading, edge, forces).number("stiffness") != 0
    tendons = add(item, root, "tendon")
    equalities = add(item, root, "equality")
    softness = {name: str(edge.get(name)) for name in ("solref", "solimp") if edge.get(name)}
    for a, b in edges:
        name = f"{item.text('name')}_{a}_{b}"
        tendon = add(item, tendons, "spatial", name=name, **forces)
        if holds_springs:  # at rest in the file's pose, independent of springref of a class's joints
            tendon.set("springlength", repr(math.dist(points[a], points[b])))
        item.reading.classless[tendon] = True
        for end in (a, b):
            add(item, tendon, "site", site=f"{item.text('name')}_{end}")
        if holds:
            held = add(item, equalities, "tendon", tendon1=name, **softness)
            item.reading.classless[held] = True


def add(item: Item, parent: Element, kind: str, /, **attributes: str) -> Element:
    """A new element with the file and line of the flexcomp."""
    made = etree.SubElement(parent, kind, attributes)
    made.sourceline = item.element.sourceline
    if item.reading.included:
        item.reading.included[made] = item.reading.at(item.element).file
    return made


def numbers(values: Sequence[float]) -> str:
    """The numbers as the text of an attribute, with all digits."""
    return " ".join(map(repr, values))
