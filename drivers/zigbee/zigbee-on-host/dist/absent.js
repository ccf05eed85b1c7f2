/** The adapter `zoh` needs the package itself; Gatehouse speaks to Z-Stack coordinators alone. */
throw new Error('the adapter zoh is not part of Gatehouse');
