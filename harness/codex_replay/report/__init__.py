"""The results of a run, and the pages made from them. No module of this package depends on pytest."""
