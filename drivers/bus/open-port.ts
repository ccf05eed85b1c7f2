/** The port that the options name. */
import type { OpenPort } from './port.ts';
import { openSerialPort } from './serial-port.ts';
import { openTcpPort } from './tcp-port.ts';

export const openPort: OpenPort = (options, ...rest) =>
  options.port.startsWith('tcp://') ? openTcpPort(options, ...rest) : openSerialPort(options, ...rest);
