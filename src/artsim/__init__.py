"""artsim: articulated robots simulated from a shell; exact couplings, audited joint forces, bit-for-bit replay."""

__version__ = "0.1.0"
