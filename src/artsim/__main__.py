from artsim.cli.main import main

main()
