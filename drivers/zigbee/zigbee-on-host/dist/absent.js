/** The adapter `zoh` needs the package itself; Gatehouse speaks to coordinators with Z-Stack and EmberZNet alone. */
throw new Error('the adapter zoh is not part of Gatehouse');
