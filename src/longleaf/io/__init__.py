"""Reading and writing files: models, stores, tables and XMLC data sets."""
