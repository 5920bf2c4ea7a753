from artsim.cli.main import start

start()
