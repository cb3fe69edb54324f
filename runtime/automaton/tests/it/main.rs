//! The generator refuses what an automaton would read otherwise than pest.
