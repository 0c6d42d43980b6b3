"""Read and write files. Each file is written completely or not at all."""
