"""The paper's experiments: from a domain's result matrix to tables and figures.

Read in this order: `domains` make matrices; `methods` are what is compared; `protocol` holds policies out and measures
errors; `studies` cut a matrix up into tasks; `runner` runs them, here or on a cluster, and keeps what is done; `tables`
are made of what came of them; `figures` are drawn from tables; `reproductions` puts it all under the paper's names.
"""
