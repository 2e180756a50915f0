# One-line wrappers of dev.py, for people who type make. PYTHON names the interpreter that runs dev.py.
PYTHON ?= python3

.PHONY: help demo test lint audit matrix conformance clients slow browser chaos soak bench
help:    ; @$(PYTHON) dev.py help
demo:    ; @$(PYTHON) dev.py demo $(if $(filter-out 0,$(SERVE)),--serve) $(ARGS)
test:    ; @$(PYTHON) dev.py test $(ARGS)
lint:    ; @$(PYTHON) dev.py lint
audit:   ; @$(PYTHON) dev.py audit
matrix:  ; @$(PYTHON) dev.py matrix $(ARGS)
conformance: ; @$(PYTHON) dev.py conformance $(ARGS)
clients: ; @$(PYTHON) dev.py clients $(ARGS)
slow:    ; @$(PYTHON) dev.py slow $(ARGS)
browser: ; @$(PYTHON) dev.py browser $(ARGS)
chaos:   ; @$(PYTHON) dev.py chaos $(ARGS)
soak:    ; @$(PYTHON) dev.py soak $(or $(MINUTES),30) $(ARGS)
bench:   ; @$(PYTHON) dev.py bench $(ARGS)
