"""Broken variants of the reference proxy, one small wrong behaviour each.

`python -m harness.reference.proxy_variants NAME` runs one. They prove the checks of the suite for proxies: each must be seen by
the checks that its line in the table names (docs/strength.md). A variant is a patch on functions of the honest proxy, made
before it starts; the honest proxy knows nothing of them.

    table       the one table: name, profile, what is wrong, which checks must see it
    patching    how a patch is entered under its name
    wrong_*     the patches, by what they spoil
"""
