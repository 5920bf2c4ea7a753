"""`artsim view`: show a robot in the browser with a slider for every joint."""

from __future__ import annotations

import click

from artsim.cli.options import reading_words
from artsim.cli.scene_options import SceneOptions, load_models, models_argument, scene_options
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.viewer import served, show, viewer_options


@click.command(short_help="Show a robot with a slider for every joint.")
@models_argument()
@viewer_options
@scene_options
def view(models: tuple[str, ...], port: int, browser: bool, scene: SceneOptions) -> None:
    """Show MODEL (URDF, MJCF or SDF, or - for standard input), or several in one scene, in a browser.

    Sliders move the independent joints within their own limits and those of their followers. The page is served to this
    machine only, until Ctrl-C.
    """
    articulation = load_models(models, scene)
    with served(f"artsim: {articulation.name}", port) as server:
        from artsim.io.viewer.poser import Poser, viewed

        poser = Poser(server, viewed(articulation))
        warn(poser.notes)
        warn_of_model(articulation.notes, models, reading_words(scene.load))
        show(server, poser.run, browser=browser)
