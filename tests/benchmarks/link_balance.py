"""Forces on every link of public robots with tendons or actuators: `python -m tests.benchmarks.link_balance`.

Ten steps with every control at a fifth of its range; of the recorded wrenches and accelerations alone, how far the
forces on a link (through joints, of tendons and actuators, contacts, gravity) are from its change of momentum. The
sensors' share is in tests/equipment/test_link_balance.py.
"""

from __future__ import annotations

import argparse
import warnings

import mujoco

import artsim
from artsim.sim.foundation.errors import ArtsimError
from tests.conftest import corpus_entries
from tests.equipment.wrench_balance import driven, imbalance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=0, help="robots; 0: all")
    count = parser.parse_args().count
    mujoco.set_mju_user_warning(lambda _: None)
    warnings.simplefilter("ignore", artsim.ModelWarning)
    found: list[tuple[float, str]] = []
    refused: list[str] = []
    tendons = actuators = touching = 0
    for entry in corpus_entries("mjcf"):
        if entry["expect"] != "load" or len(found) == count > 0:
            continue
        try:
            model = mujoco.MjModel.from_xml_path(entry["path"])
            if not (model.nu or model.ntendon) or model.nv == 0:
                continue
            run = driven(model, entry["path"])
            found.append((max(imbalance(model, run, row) for row in range(10)), entry["id"]))
            tendons += model.ntendon > 0
            actuators += model.nu > 0
            touching += len(run.contacts.get("step", ())) > 0
        except (ArtsimError, ValueError) as error:
            refused.append(f"{entry['id']}: {str(error)[:90]}")
    found.sort(reverse=True)
    print(f"{len(found)} robots: {tendons} with tendons, {actuators} with actuators, {touching} that touch something")
    print(f"{sum(value <= 1e-9 for value, _ in found)} balance to 1e-9; the largest misses, relative:")
    for value, name in found[:5]:
        print(f"  {value:9.2e}  {name}")
    print(f"{len(refused)} were not run:", *refused, sep="\n  ")


if __name__ == "__main__":
    main()
