"""Sine and cosine of a T, with equal bytes in both widths and on all machines."""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import floor, real, where_greater
from artsim.sim.foundation.records import Real


@inlined
def sincos(x: Real) -> tuple[Real, Real]:
    """(sin x, cos x) of T, |error| < 2 ulp for |x| < 1e5: Cody-Waite reduction, minimax polynomials (Cephes).

    Both widths use it, so that they agree, and no C library is called whose results differ between machines.
    """
    n = floor(x * 0.6366197723675814 + 0.5)
    far = x - n * 1.5707963267341256  # exact, as is the next product
    near = far - n * 6.077100506303966e-11
    lost = (far - near) - n * 6.077100506303966e-11  # rounding error of `near`: without it 2.4 ulp
    r = near + (lost - n * 2.0222662487959506e-21)
    z = r * r
    s = ((z * 1.58969099521155010221e-10 - 2.50507602534068634195e-08) * z + 2.75573137070700676789e-06) * z
    s = r + r * z * (
        ((s - 1.98412698298579493134e-04) * z + 8.33333333332248946124e-03) * z - 1.66666666666666324348e-01
    )
    c = ((z * -1.13596475577881948265e-11 + 2.08757232129817482790e-09) * z - 2.75573143513906633035e-07) * z
    c = (
        1.0
        - 0.5 * z
        + z * z * (((c + 2.48015872894767294178e-05) * z - 1.38888888888741095749e-03) * z + 4.16666666666666019037e-02)
    )
    quadrant = n - 4.0 * floor(n * 0.25)
    upper = floor(quadrant * 0.5)
    odd = quadrant - 2.0 * upper
    half = real(0.5, x)
    sine = where_greater(odd, half, c, s) * (1.0 - 2.0 * upper)
    cosine = where_greater(odd, half, s, c) * (1.0 - 2.0 * (odd + upper - 2.0 * odd * upper))
    return sine, cosine
