"""Machine-made mutants: what a correct subject sends, with one small change each; a check must be red on every one.

operators   the changes of a JSON value and of a text; pure
sites       where a change can be made: every place of a value, and how it looks there
messages    the mutants of messages of any kind: the clients', the fakes'
calls       the mutants of the calls to the app-server and of the developer instructions
answers     the mutants of the answers to the client
recording   what the honest proxy sent in each case, and a stand-in for the `proxy` fixture that gives it back, changed
clients     the reference clients: their requests and lines, and stand-ins for their fixtures
fakes       the fakes: the backend's answers, the app-server's lines, and stand-ins for their fixtures
logged      what an editor or a server did in a case, to be given once more
judge       runs cases on a mutant up to the first red one
table       the mutants that are allowed, with the statement or the reason (allowed.txt)
plugin      the run: `pytest suites -p tests.mutants.plugin` (docs/strength.md)
"""
