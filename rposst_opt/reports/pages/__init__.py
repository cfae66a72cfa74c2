"""Pages that open in a browser and need nothing else: the report on a test, and the k-of-N explorer.

Python finds the numbers (`report`, `explorer`) and writes them into a template (`page`, `report_page`) together with
the scripts that draw them. Only the explorer's sliders and its game compute in the browser, by `assets/measures.js`.
"""
