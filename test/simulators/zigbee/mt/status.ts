/** Statuses of Z-Stack, by the names of ZComDef.h; those of the 802.15.4 MAC and of ZDO among them. */
export const STATUS = {
  success: 0x00,
  failure: 0x01,
  invalidParameter: 0x02,
  nvItemUninit: 0x09,
  nvOperFailed: 0x0a,
  nvBadItemLength: 0x0c,
  memError: 0x10,
  bufferFull: 0x11,
  zdoInvalidRequestType: 0x80,
  zdoDeviceNotFound: 0x81,
  zdoInvalidEndpoint: 0x82,
  zdoNotActive: 0x83,
  zdoNotSupported: 0x84,
  zdoNoEntry: 0x88,
  zdoTableFull: 0x8c,
  apsNoAck: 0xb7,
  apsDuplicateEntry: 0xb8,
  nwkInvalidRequest: 0xc2,
  nwkUnknownDevice: 0xc8,
  nwkNoRoute: 0xcd,
  macChannelAccessFailure: 0xe1,
  macNoAck: 0xe9,
  macTransactionExpired: 0xf0,
} as const;

/** What a confirm can be made to say (SWRA198, AF_DATA_CONFIRM). */
export const CONFIRM_FAULTS = {
  MAC_NO_ACK: STATUS.macNoAck,
  NO_ROUTE: STATUS.nwkNoRoute,
  CHANNEL_ACCESS_FAILURE: STATUS.macChannelAccessFailure,
  TRANSACTION_EXPIRED: STATUS.macTransactionExpired,
  BUFFER_FULL: STATUS.bufferFull,
  APS_NO_ACK: STATUS.apsNoAck,
} as const;
export type ConfirmFault = keyof typeof CONFIRM_FAULTS;
