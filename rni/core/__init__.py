"""What every other package uses: errors, checks, files, random numbers, parts, threads, memory, matrix products."""
