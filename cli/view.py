"""`artsim view`: a robot in the browser, with a slider for every joint."""

from __future__ import annotations

import click

from artsim.cli.options import Base, LoadOptions, model_options
from artsim.cli.scene_options import load_models, scene_options
from artsim.cli.terminal import warn
from artsim.cli.viewer import served, show, viewer_options
from artsim.loaders.load import load_articulation


@click.command(short_help="Show a robot with a slider for every joint.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@scene_options
@viewer_options
@model_options
def view(
    models: tuple[str, ...],
    place: tuple[str, ...],
    srdf: tuple[str, ...],
    port: int,
    browser: bool,
    load_options: LoadOptions,
    bases: dict[str, Base],
) -> None:
    """Show MODEL (URDF or MJCF, or - for standard input), or several in one scene, in a browser.

    Sliders move the independent joints within their limits and those of the joints that follow them. The page is served
    to this machine only, until Ctrl-C.
    """
    articulation = load_models(models, load_options, bases, place, srdf) or load_articulation(models[0], **load_options)
    with served(f"artsim: {articulation.name}", port) as server:
        from artsim.io.viewer.poser import Poser, viewed

        poser = Poser(server, viewed(articulation))
        warn([*map(str, articulation.notes), *poser.notes])
        show(server, poser.run, browser=browser)
