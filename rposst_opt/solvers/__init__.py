"""Our own algorithms, one per file, and the compiled loops that they run on (`kernels`)."""
