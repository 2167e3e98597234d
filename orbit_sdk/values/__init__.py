"""What everybody shares: ids, instants, strict and canonical JSON, names, limits, defaults.

Pure: nothing here reads a clock, a random source or the network.
"""
