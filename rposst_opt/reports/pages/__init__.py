"""Pages that open in a browser and need nothing else: the report on a test, and the k-of-N explorer.

Python finds the numbers (`report`, `explorer`), and then only writes: `sections` lists what a report shows, `tables`,
`charts` and `unseen_policies` say what stands in each section, and `page` puts it all into templates, together with the
scripts that draw it. Only the explorer's sliders and its game compute in the browser, by `assets/measures.js`.
"""
