"""Random robots, each from its seed and number, compared with MuJoCo and Pinocchio: `python -m tests.random_models`."""
