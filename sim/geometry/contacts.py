"""The shapes that may touch, as arrays, and the records of their contacts in a step.

Constants are in Contacts (the engine's data on shapes) and in collision's Shapes, results of a step in ContactWork;
ContactBundle holds them as contact.model, contact.shapes and contact.data. A run in which no shapes may touch has no
ContactBundle and runs kernels that were compiled without contact. This file does not import numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from artsim.collision.gjk_work import GjkWork, make_gjk_work
from artsim.collision.shapes import MOST_CONTACTS, Manifold, Shapes
from artsim.sim.articulation.chains import chain_length
from artsim.sim.articulation.model import Model
from artsim.sim.foundation.jit import Entry, point_at
from artsim.sim.foundation.records import (
    ConstInts1,
    ConstInts2,
    ConstReals1,
    ConstReals2,
    ConstReals3,
    Ints1,
    Ints2,
    Lanes1,
    Reals1,
    Reals2,
    Reals3,
    allocate,
)
from artsim.sim.geometry.solids import Kept
from artsim.sim.run_data.phases import Clock

TOUCHING = 1e-6  # [m] a gap below which shapes touch
SHARP, RIM, OVAL = range(3)  # a contact does not roll over a shape, or with its centre; rolls on a rim; on an ellipsoid
DIRECTIONS = 6  # of a contact: normal, two tangents, torsion, two rollings
SOFT_ALONE = 2  # of Contacts.pyramidal
LEAST_MIX = 1e-15  # a smaller weight of softness counts as none
ALONG_NORMAL, ALONG_TANGENT = range(2)  # the first of them, and of the lines of a contact's frame
# entries of ContactWork.number: contacts stored, and contacts detected
CONTACTS, FOUND_CONTACTS = range(2)
# columns of ContactWork.before beside SHAPE_A, SHAPE_B and FEATURE (state.py); three numbers of the point
BEFORE_DIMENSION, BEFORE_GAP, BEFORE_POINT, CONTACT_BEFORE = 3, 4, 5, 8


class Contacts(NamedTuple):
    """The engine's data on shapes, and the pairs that may touch. n shapes, np explicit pairs (MJCF `<pair>`)."""

    body: ConstInts1  # (n,)
    link: ConstInts1  # (n,) -1: of the scene, not of a link
    geom: ConstInts1  # (n,) index of its name
    place: ConstReals2  # (n, 3) the shape's origin in the body's internal frame [m]
    turn: ConstReals3  # (n, 3, 3) shape axes in the body's internal frame
    extent: ConstReals2  # (n, 3) half of its bounding box in its own axes [m]; planes: 0
    rounding: ConstReals1  # (n,) radius of spheres and capsules, whose surfaces turn about their centres [m]
    rolls: ConstInts1  # (n,) SHARP, RIM or OVAL
    square: ConstInts1  # (n,) 1: a box, whose edges lie along the shape's axes
    swing: ConstReals1  # (n,) largest distance of its points from its origin, for shapes that can turn [m]
    plane: ConstInts1  # (planes,) the shapes that are planes
    solid: ConstInts1  # (n - planes,) the shapes that are not
    rank: ConstInts1  # (n,) place of a shape in the order of contacts: planes come first
    allowed: ConstInts2  # (n, n) -1: the pair never touches; 0: may touch; 1 + k: may, as explicit pair k says
    # per shape, combined when it touches
    dimension: ConstInts1  # (n,) 1: no friction, 3: sliding, 4: also torsional, 6: also rolling
    priority: ConstInts1  # (n,)
    mix: ConstReals1  # (n,) weight of its softness
    friction: ConstReals2  # (n, 5) two sliding, torsional [m], two rolling [m]
    soft: ConstInts1  # (n,) 0: hard
    reference: ConstReals2  # (n, 2) MuJoCo's solref
    impedance: ConstReals2  # (n, 5) MuJoCo's solimp
    margin: ConstReals1  # (n,) [m]
    gap: ConstReals1  # (n,) [m]
    reach: ConstReals1  # (n,) largest distance of a contact: its margin and gap, or a pair's [m]
    restitution: ConstReals1  # (n,)
    adhesion: ConstReals1  # (n,) [N]
    belt: ConstReals2  # (n, 6) velocity of its surface, linear and angular, in shape axes [m/s, rad/s]
    # per explicit pair
    pair_dimension: ConstInts1  # (np,)
    pair_friction: ConstReals2  # (np, 5)
    pair_soft: ConstInts1  # (np,)
    pair_reference: ConstReals2  # (np, 2)
    pair_friction_reference: ConstReals2  # (np, 2) solref along the surface; 0 0: pair_reference
    pair_impedance: ConstReals2  # (np, 5)
    pair_margin: ConstReals1  # (np,)
    pair_gap: ConstReals1  # (np,)
    pair_adhesion: ConstReals1  # (np,)
    # per run
    pyramidal: ConstInts1  # (1,) 1: friction cones are pyramids; SOFT_ALONE: those of soft contacts
    slack: ConstReals1  # (1,) share of their normal's softness that the friction of soft contacts keeps
    mobility: ConstReals1  # (n,) velocity per impulse of the centre of mass of its link, the scale of softness [1/kg]


class ContactWork(NamedTuple):
    """The contacts of a step, with room for k; each is of shape b on shape a."""

    number: Ints1  # (2,) contacts; contacts detected, more where the room was exceeded
    detector: Ints1  # (2,) addresses of the compiled detection and of its table
    advancement: Ints1  # (2,) addresses of the continuous check and of its table; 0: there is none
    foresight: Ints1  # (2,) addresses of the foresight of gaps (foresight.py) and of its table
    # shapes, as collision's Placed
    position: Reals2  # (n, 3) world axes [m]
    rotation: Reals3  # (n, 3, 3) shape axes to world
    common: Reals1  # (3,) velocity of the frame in which shapes' margins are counted [m/s]
    straight: Reals1  # (n,) rotation up to which its points count as moving straight, with the continuous check [rad]
    margin: Reals1  # (n,) speculative margin: largest motion of its points in the step without a missed contact [m]
    low: Reals2  # (n, 3) box around it and its margin [m]
    high: Reals2
    order: Ints1  # (solids,) along an axis
    swept: Reals2  # (solids, 6) boxes in that order: low and high along that axis, then along the other two [m]
    earlier_contact: Ints1  # (n,) the first contact of the step before whose second shape it is; -1: none
    next_earlier: Ints1  # (k,) the next contact of that step with this second shape; -1: none
    before: Reals2  # (k, 8) contacts of an earlier detection in this step: shapes, feature, dimension, gap, point
    # contacts
    shape: Ints2  # (k, 2)
    feature: Ints1  # (k,)
    distance: Reals1  # (k,) between the surfaces; negative: penetration [m]
    gap: Reals1  # (k,) distance less the margin, which must not become negative [m]
    point: Reals2  # (k, 3) world axes [m]
    frame: Reals3  # (k, 3, 3) by rows: normal from a to b, two tangents
    absent: Ints1  # (k,) 1: listed for another lane of a pack alone
    near: Ints1  # (k,) 1: within margin and gap, where adhesion acts
    dimension: Ints1  # (k,) 0: detected, but not active
    friction: Reals2  # (k, 5)
    grip: Reals2  # (k, 5) the part of `friction` that the contact has needed so far (contact_rows.py: set_grip)
    most_grip: Reals1  # (k,) bound of the coefficients in `grip`
    soft: Ints1  # (k,)
    reference: Reals2  # (k, 2)
    friction_reference: Reals2  # (k, 2) solref along the surface
    impedance: Reals2  # (k, 5)
    hardness: Reals1  # (k,) MuJoCo's d of a soft contact at its depth
    restitution: Reals1  # (k,)
    adhesion: Reals1  # (k,) adhesion of the two surfaces while they are near [N]
    pull: Reals1  # (k,) adhesion, including that of adhesion actuators [N]
    belt: Reals2  # (k, 3) velocity of b's surface against a's, along tangents and about the normal [m/s, rad/s]
    arm: Reals3  # (k, 2, 3) the point, from the origins of the two bodies, world axes [m]
    roll: Reals2  # (k, 3) W⁻¹ of the surface over which the contact moves, in tangents: 11, 12, 22 (rolling.py) [m]
    span: Reals1  # (k,) farthest that the contact moves over it in a step [m]; 0: it does not roll
    carried: Reals2  # (k, 4) share of the first body in the rotation of the normal, in tangents: 11, 12, 21, 22
    carriers: Reals1  # (k,) 1: `carried` holds, 2: or the second body carries the normal; 0: the normal's rotation is 0
    drift: Reals1  # (k,) second derivative of the gap at zero independent acceleration [m/s²]
    turning: Reals2  # (nb, 3) angular velocities of the bodies before the step [rad/s]
    overtaken: Reals1  # (k,) closing speed beyond that foreseen by its row, if it pushed in the last step [m/s]
    bend: Reals2  # (k, 2) rotation of each body in a step up to which the drift suffices [rad]
    aimed: Reals1  # (k,) 1: aimed at the places of its bodies at the end of the step (foresight.py)
    ahead: Reals1  # (k,) distance at the end of the step [m]
    ahead_point: Reals2  # (k, 3) estimate of its point at the end of the step [m]
    curve: Reals1  # (k,) mean rate of its gap over the step less that of its row [m/s]
    change: Reals1  # (k,) error of `curve` found by the last aim [m/s]
    unaimed: Reals1  # (k,) `curve` before the last aim [m/s]
    foreseen: Reals1  # (k,) `curve` before all aims, from the drift [m/s]
    aiming: Reals1  # (4,) of stepping/contact_aims.py: AIM_PHASE, …
    swerve: Reals2  # (k, 2) rate of change of the slip along the two tangents where the contact rolls [m/s²]
    row: Ints1  # (k,) its first row; -1: none
    rows: Ints1  # (k,) number of rows
    scale: Reals2  # (k, 6) of its rows, which makes the friction cone circular
    start: Reals2  # (k, 6) impulses of the last step
    regularised: Reals1  # (k,) Rows.regularised of the last step
    allowed: Reals1  # (k,) depth of its pair at the start of the run, while the pair stays near [m]
    # of stepping/strain.py
    held: Reals1  # (k,) 1 + the hard loop that holds it inside, so that it is left out, negative on trial; 0: none
    stays: Reals1  # (k,) 1: only kept from getting deeper, since a loop would yield to more
    apart: Reals1  # (1,) speed at which contacts that are left out seem to open [m/s]
    inside: Reals1  # (k,) 1: only kept from getting deeper (rebounds.py)
    phase: Reals1  # (1,) kind of the step's last solution, of those that limit the contacts' energy: REBOUNDING …
    tries: Reals1  # (1,) number of solutions of this kind
    force: Reals2  # (k, 6) on b over the step: along the frame's axes [N], about them [N m]


class Bounces(NamedTuple):
    """Impacts of a step: scratch of contacts with restitution, with room for k contacts (rebounds.py, impacts.py)."""

    hit: Lanes1  # (k,) 1: the contact took part in several impacts
    lightness: Lanes1  # (k,) velocity along the normal per impulse; 0: not known [1/kg]
    opening: Lanes1  # (k,) gap that is left at the next impact [m]
    wish: Lanes1  # (k,) velocity along the normal after an impact [m/s]
    blow: Lanes1  # (k,) impulse of an impact [N s]
    aimed: Lanes1  # (k,) 1: the contact opens at -`aim` at least, instead of at its own rebound
    aim: Lanes1  # (k,) [m/s]


class ContactBundle(NamedTuple):
    """The shapes that may touch, and their contacts in a step; None in a run without contact."""

    model: Contacts
    data: ContactWork
    bounces: Bounces | Any = None  # None in kernels that build no rows
    lanes: Any = None  # of packs: pack_contacts.LaneContacts


AnyContacts: TypeAlias = ContactBundle | Any  # or a pack's bundle, with the same fields in lanes
AnySweep: TypeAlias = ContactWork | Any  # or a pack's, which has its field `straight`
EitherContacts: TypeAlias = Any  # of functions that pass it on: ContactBundle, or PackContactBundle


class NarrowBundle(NamedTuple):
    """Shapes and scratch for detecting the contacts of a pair of shapes."""

    shapes: Shapes
    gjk: GjkWork
    manifold: Manifold


class Sights(NamedTuple):
    """n shapes that rays can hit. Kernels receive them as `sights`."""

    body: ConstInts1  # (n,)
    link: ConstInts1  # (n,) -1: the scene
    place: ConstReals2  # (n, 3) the shape's origin in the body's own frame [m]
    turn: ConstReals3  # (n, 3, 3) shape axes in that frame
    window: ConstReals2  # (n, 2) half sizes of a plane's rectangle, 0: infinite [m]
    floor: ConstReals1  # (n,) z in shape axes on which a height field stands [m]


class Overlap(NamedTuple):
    """Two links of a robot with shapes that overlap wherever the joints are, and are left out (runs/overlaps.py)."""

    link_a: str
    link_b: str
    pairs: int  # of shapes that are left out


class Touching(NamedTuple):
    """The shapes that may touch in a run; not itself a record."""

    contacts: Contacts
    shapes: Shapes
    geoms: tuple[str, ...]  # names
    kept: Kept  # meshes and height fields as outputs store them
    overlaps: tuple[Overlap, ...] = ()  # pairs that contacts.allowed lacks since no joint parts them

    @property
    def bodies(self) -> int:
        """The number of bodies up to the last that has shapes, the world among them."""
        return int(self.contacts.body.max(initial=0)) + 1


_DETECTION = (ContactBundle, NarrowBundle)
DETECT = Entry("detect", "artsim.sim.contact.detection", (*_DETECTION, None))
CLOCKED_DETECT = Entry("detect", "artsim.sim.contact.detection", (*_DETECTION, Clock), "_clocked")


def make_contact_work(touching: Touching, room: int) -> ContactWork:
    """Allocate a step's contacts, with room for `room` contacts."""
    work: ContactWork = allocate(ContactWork, contact_shapes(touching, room))
    work.order[:] = touching.contacts.solid
    return work


def contact_shapes(touching: Touching, room: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the fields of ContactWork, with room for `room` contacts."""
    n, solids = len(touching.contacts.body), len(touching.contacts.solid)
    return {
        **dict.fromkeys(ContactWork._fields, (room,)),
        "number": (2,),
        "turning": (touching.bodies, 3),
        "detector": (2,),
        "advancement": (2,),
        "foresight": (2,),
        **dict.fromkeys(("phase", "tries", "apart"), (1,)),
        "common": (3,),
        "aiming": (4,),
        "margin": (n,),
        "straight": (n,),
        **dict.fromkeys(("low", "high", "position"), (n, 3)),
        "rotation": (n, 3, 3),
        "order": (solids,),
        "swept": (solids, 6),
        "earlier_contact": (n,),
        "shape": (room, 2),
        **dict.fromkeys(("point", "ahead_point", "belt", "roll"), (room, 3)),
        "frame": (room, 3, 3),
        **dict.fromkeys(("friction", "grip", "impedance"), (room, 5)),
        **dict.fromkeys(("reference", "friction_reference", "swerve", "bend"), (room, 2)),
        "before": (room, CONTACT_BEFORE),
        "carried": (room, 4),
        "arm": (room, 2, 3),
        **dict.fromkeys(("scale", "start", "force"), (room, DIRECTIONS)),
    }


def make_bounces(room: int, width: int = 1) -> Bounces:
    """Allocate the impacts of a step, with room for `room` contacts."""
    made: Bounces = allocate(Bounces, dict.fromkeys(Bounces._fields, (room,)), width)
    return made


def make_narrow(touching: Touching) -> NarrowBundle:
    """The shapes of a run, with scratch for a pair of them."""
    most = (MOST_CONTACTS,)
    manifold: Manifold = allocate(
        Manifold, {"number": (1,), "gap": most, "point": (*most, 3), "normal": (*most, 3), "feature": most}
    )
    return NarrowBundle(touching.shapes, make_gjk_work(), manifold)


def connect_detection(
    touching: Touching, work: ContactWork, pointers: Any = None, clock: Clock | None = None
) -> object:
    """Let kernels that receive `work`, or `pointers`, call `detect` as long as the returned object is kept."""
    pointers = work.detector if pointers is None else pointers
    entry = DETECT if clock is None else CLOCKED_DETECT
    contact = ContactBundle(touching.contacts, work)
    return point_at(entry, 1, pointers, contact, make_narrow(touching), clock)


def contact_room(model: Model, touching: Touching, room: int) -> tuple[int, int]:
    """Most constraint rows, and their entries, that `room` contacts can have in a step."""
    g = touching.contacts
    depth = [chain_length(model, int(body)) for body in set(g.body.tolist())]
    longest = sum(sorted(depth)[-2:])
    widest = max([int(d) for d in (*g.dimension, *g.pair_dimension)], default=1)
    rows = most_rows(g, widest) * room
    return rows, rows * longest


def most_rows(contacts: Contacts, dimension: int) -> int:
    """Most rows of a contact of this dimension."""
    return max(2 * (dimension - 1), 1) if contacts.pyramidal[0] else dimension


def first_room(touching: Touching) -> int:
    """Initial room for contacts of a run, which is enlarged when exceeded."""
    g = touching.contacts
    pairs: Any = (g.allowed >= 0).sum() // 2
    return int(min(8 * int(pairs), 32 + 4 * len(g.body)))
