"""The quantities that every robot has: those of its tree."""

from artsim.sim.quantities.catalogue import OF_CONSTRAINTS, QUANTITIES

TREE_QUANTITIES = {name: quantity for name, quantity in QUANTITIES.items() if name not in OF_CONSTRAINTS}
