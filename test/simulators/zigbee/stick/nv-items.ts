/** Items of the memory of a stick, by the ids of ZComDef.h, and the tables of NVINTF_SYSID_ZSTACK: an item for each row. */
export const NV = {
  extendedAddress: 0x0001,
  startupOption: 0x0003,
  nib: 0x0021,
  extendedPanId: 0x002d,
  activeKey: 0x003a,
  alternateKey: 0x003b,
  apsUseExtendedPanId: 0x0047,
  apsLinkKeyTable: 0x004c,
  /** ZCD_NV_BDBNODEISONANETWORK. */
  isOnNetwork: 0x0055,
  preconfiguredKey: 0x0062,
  preconfiguredKeysEnabled: 0x0063,
  networkKey: 0x0082,
  panId: 0x0083,
  channels: 0x0084,
  logicalType: 0x0087,
  directCallbacks: 0x008f,
  trustCenterSeed: 0x0101,
} as const;

export const ZSTACK = 1;
export const EX_NV = {
  addressManager: 1,
  trustCenterKeys: 4,
  installKeys: 5,
  apsKeys: 6,
  securityMaterial: 7,
} as const;

/** The name of a row of a table in the memory. */
export const exKey = (system: number, id: number, row: number) => `${system}/${id}/${row}`;
