/** Server-sent events as the daemon writes them (HTML Living Standard, 9.2). */

export interface StreamedEvent {
  /** Undefined for an event without a name. */
  name: string | undefined;
  id: string | undefined;
  data: Record<string, unknown>;
}

export async function* streamedEvents(text: AsyncIterable<string>): AsyncGenerator<StreamedEvent> {
  let rest = '';
  for await (const chunk of text) {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((field) => [name(field), value(field)] as const));
      const data = JSON.parse(fields.get('data') ?? '{}') as Record<string, unknown>;
      yield { name: fields.get('event'), id: fields.get('id'), data };
    }
  }
}

const name = (field: string) => field.slice(0, field.indexOf(': '));
const value = (field: string) => field.slice(field.indexOf(': ') + 2);
