"""What files and standard output must have, word for word."""

KEYS_OF_THE_CONTRACT = {
    "format": str,
    "cases": list,
    "weights": list,
    "objective": float,
    "lower_bound": float,
    "gap": float,
    "status": str,
    "backend": str,
    "measure": dict,
    "loss": str,
    "size": int,
    "n_cases": int,
    "n_policies": int,
    "n_scenarios": int,
    "seconds": float,
    "scale": dict,
}
