"""The logarithm of a rotation as a T: without branches on values, in both widths."""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import real, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Vec3, Vec4

_TINY = 1e-150  # length of a quaternion's vector part below which its direction is not defined


@inlined
def logarithm_of(q: Vec4) -> Vec3:
    """Axis times angle, at most π [rad], of a unit quaternion (w, x, y, z); error below 4 ulp.

    With s = sin(θ/2) and c = |cos(θ/2)|, tan(θ/4) = s / (1 + c) is at most 1, and tan(θ/8) = t / (1 + √(1 + t²)) at
    most tan(π/8), where Cephes' rational approximation of the arctangent holds.
    """
    w, x, y, z = q
    zero = zero_like(w)
    s = sqrt(x * x + y * y + z * z)
    c = where_greater(zero, w, -w, w)
    t = s / (1.0 + c)
    t = t / (1.0 + sqrt(1.0 + t * t))
    z2 = t * t
    p = (-8.750608600031904122785e-1 * z2 - 1.615753718733365076637e1) * z2 - 7.500855792314704667340e1
    p = (p * z2 - 1.228866684490136173410e2) * z2 - 6.485021904942025371773e1
    r = ((z2 + 2.485846490142306297962e1) * z2 + 1.650270098316988542046e2) * z2 + 4.328810604912902668951e2
    r = (r * z2 + 4.853903996359136964868e2) * z2 + 1.945506571482613964425e2
    angle = 8.0 * (t + t * (z2 * p / r))
    tiny = real(_TINY, w)
    scale = where_greater(s, tiny, angle / where_greater(s, tiny, s, tiny), zero + 2.0)
    scale = where_greater(zero, w, -scale, scale)
    return scale * x, scale * y, scale * z
