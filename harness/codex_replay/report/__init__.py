"""The results of a run: its data, and the pages made from it. No module of this package depends on pytest."""
