"""Machine-made mutants: what a correct subject sends, with one small change each; a check must be red on every one.

operators   the changes of a JSON value and of a text; pure
sites       where a change can be made: every place of a value, and how it looks there
calls       the mutants of the calls to the app-server and of the developer instructions
answers     the mutants of the answers to the client
recording   what the honest proxy sent in each case, and a stand-in for the `proxy` fixture that gives it back, changed
judge       runs cases on a mutant up to the first red one
table       the mutants that are allowed, with the statement or the reason (allowed.txt)
plugin      the run: `pytest suites/proxy -p tests.mutants.plugin` (docs/strength.md)
"""
