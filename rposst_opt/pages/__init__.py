"""Pages that open in a browser and need nothing else: the report on a test, and the k-of-N explorer.

Python gathers the numbers (`report`, `explorer`) and writes them into a template together with the scripts that draw
them (`page`). Only the explorer's sliders and its game compute in the browser, by `assets/measures.js`.
"""
