"""Rules over the graph, data flow, types and limits of a definition."""
