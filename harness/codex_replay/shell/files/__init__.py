"""Read and write files; each file is written completely or not at all."""
