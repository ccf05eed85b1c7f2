/**
 * Which frames the library takes in. It takes an attribute for what its number says, no matter which maker defined it and of
 * whatever type it is (dist/zspec/zcl/zclFrame.js, fromBuffer).
 */
import { CLUSTER } from '../configure.ts';
import { field } from '../values.ts';
import { completeFrame, isCredible, isCredibleRecord } from './credible.ts';

/** Of the library's Zcl.Frame. */
interface Frame {
  header: { manufacturerCode: number | undefined; isGlobal: boolean; frameControl: { direction: number } };
  command: { name: string };
  payload: unknown;
}
interface Zcl {
  Frame: { fromBuffer(cluster: number, header: unknown, data: Buffer, ...rest: unknown[]): Frame };
  Direction: { SERVER_TO_CLIENT: number };
}

/** Returns what says the manufacturer code of the locks' own cluster; one for each process, as everything of the library. */
export function filterFrames(library: unknown): (ownCode: number | undefined) => void {
  const { Frame, Direction } = library as Zcl;
  const { fromBuffer } = Frame;
  let ownCode: number | undefined;
  Frame.fromBuffer = (cluster, head, data, ...rest) => {
    const bytes = cluster === CLUSTER.doorLock ? completeFrame(data) : data;
    const frame = fromBuffer.call(Frame, cluster, head, bytes, ...rest);
    const { manufacturerCode, frameControl, isGlobal } = frame.header;
    const fromServer = frameControl.direction === Direction.SERVER_TO_CLIENT;
    if (!isCredible({ cluster, manufacturerCode, fromServer }, ownCode))
      throw new Error('a frame of another maker, or of the other side');
    const isReport = isGlobal && (frame.command.name === 'report' || frame.command.name === 'readRsp');
    const records: unknown = frame.payload;
    if (!isReport || !Array.isArray(records)) return frame;
    const credible = records.filter((one) =>
      isCredibleRecord(cluster, field(one, 'attrId'), field(one, 'dataType')),
    );
    return Object.assign(frame, { payload: credible });
  };
  return (code) => {
    ownCode = code;
  };
}
