"""Networks, which consist of recurrent weights, an activation function, and a linear readout."""
