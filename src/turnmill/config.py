"""One configuration tree made of the verbs' options."""
