/** What of an RS-485 device may be set, as the interface declares it: src/console makes its form of it, so that a new setting needs no other page. */

interface Schema {
  type?: string | readonly string[];
  enum?: readonly string[];
  description?: string;
  minimum?: number;
  maximum?: number;
  properties?: Readonly<Record<string, Schema>>;
}

/** A field that is read-only has no type, and the id is in the path. */
const PATH = 'deviceId';

export interface SettingsSource {
  components: { schemas: Readonly<Record<string, Schema>> };
}

export function settingsFieldsText({ components }: SettingsSource): string {
  const { properties = {} } = components.schemas.Rs485DeviceUpdate ?? {};
  const fields = Object.entries(properties)
    .filter(([name, { type }]) => type !== undefined && name !== PATH)
    .map(([name, schema]) => [name, fieldOf(schema)]);
  return `${JSON.stringify(Object.fromEntries(fields), null, 2)}\n`;
}

function fieldOf({ type, enum: choices, description, minimum, maximum, properties }: Schema) {
  const [kind] = [type].flat().filter((each) => each !== 'null');
  return {
    kind,
    ...([type].flat().includes('null') && { canBeNull: true }),
    ...(description !== undefined && { description }),
    ...(minimum !== undefined && { minimum, maximum }),
    ...(choices && { choices: choices.join(' ') }),
    ...(properties && { flags: Object.keys(properties).join(' ') }),
  };
}
