import type { BusWarningCode } from '../../drivers/contract/bus-warnings.ts';
import type { DriverErrorCode } from '../../drivers/contract/driver.ts';
import type { ErrorCode } from '../platform/errors.ts';
import type { OfflineReason } from '../resources/doors/schema.ts';
import type { FindingCode } from '../resources/rs485/bus-findings.ts';
import type { MissingCode } from '../resources/rs485/missing.ts';
import type { serviceEn } from './words.service.en.ts';

export const serviceDe: Record<keyof typeof serviceEn, string> = {
  site: 'Site',
  siteHelp:
    'Gruppen, Zeitpläne, Vorlagen, Türen und RS-485-Geräte als eine Datei, ohne Schlüssel und Zustände: dafür gibt es Backups.',
  siteSave: 'Site als Datei speichern',
  siteSaved: 'Die Site ist gespeichert: {count} {count?Eintrag:Einträge}.',
  siteImport: 'Site-Datei importieren',
  siteFile: 'Site-Datei: JSON, wie diese Seite es speichert, oder YAML',
  siteUnreadable: 'Die Datei ist nicht als YAML oder JSON lesbar, und nichts wurde geschrieben: {reason}',
  siteNotValid: 'Die Datei ist nicht gültig, und nichts wurde geschrieben:',
  siteReading: 'Die Datei wird mit der Site verglichen …',
  siteCounts: '{added} neu, {changed} geändert, {unchanged} unverändert.',
  siteLeftAlone: 'Nicht in der Datei, bleiben wie sie sind: {count}. Ein Import löscht nichts.',
  siteNothing: 'Die Site ist, wie die Datei es sagt: Es gibt nichts zu schreiben.',
  siteNew: 'neu',
  siteChanged: 'geändert',
  siteKept: 'nicht in der Datei',
  siteMore: '{count} weitere zeigen',
  siteWarnings: 'Bitte prüfen',
  siteWrite: 'Diese Änderungen schreiben',
  siteWriteAsk:
    '{count} Änderungen an der Site schreiben? Schlösser und Geräte erhalten ihre neuen Einstellungen, sobald sie erreichbar sind.',
  siteWriteYes: 'Ja, schreiben',
  siteWriting: 'Wird geschrieben: {percent} %. Was geschrieben ist, bleibt, auch wenn Sie anhalten.',
  siteWritten: 'Geschrieben: {added} neu, {changed} geändert.',
  yours: 'Ihres: {value}',
  weekHelp:
    'In der Woche ziehen: an leerer Stelle für ein neues Intervall, ein Intervall oder eines seiner Enden.',
  checkCards:
    '{count?Karte:Karten} {cards} vor der Ausgabe prüfen: Ob {count?sie geschrieben ist:sie geschrieben sind}, ist nicht bekannt.',
  numberInLock: 'Nummer im Schloss',
  accessInternal: 'Schlüssel anderer Türen, die sie öffnen',
  outputs: 'Ausgänge',
  lockHasOther: 'Das Schloss meldet Version {version}: Alle Einstellungen werden noch einmal gesendet.',
  intervals: 'Intervalle',
  relayMilliseconds: 'Sekunden, die das Relais an bleibt',
  allGroups: 'Alle Gruppen',
  noGroup: 'In keiner Gruppe',
  anyGateway: 'Jedes Gateway',
  noGateway: 'An keinem Gateway',
  slowestAnswer: 'Langsamstes Gerät antwortet nach',
  errorsInWindow: 'Fehler, letzte {minutes} min',
  examineTitle: 'Was stimmt nicht?',
  examineHelp:
    'Jede Adresse wird 20-mal gefragt: alle brauchen eine Minute oder mehr, ein Bereich weniger. Nichts wird angelegt.',
  fromAddress: 'Von Adresse (leer: die niedrigste)',
  toAddress: 'Bis Adresse (leer: die höchste)',
  examine: 'Untersuchen',
  examineAsk: '{bus} untersuchen? Türen daran antworten währenddessen langsamer.',
  examineYes: 'Ja, untersuchen',
  examining: '{bus} wird untersucht: {percent} %',
  apiHelp: 'Was Sie als {roles} aufrufen dürfen. Was Sie hier senden, wird ausgeführt.',
  apiReference: 'Referenz zum Lesen',
  apiSearch: 'Pfad, Name oder Wörter suchen',
  apiShown: '{shown} Operationen; {hidden} weitere brauchen eine andere Rolle.',
  apiRequired: 'nötig',
  apiOptional: 'optional',
  apiBody: 'Inhalt:',
  apiSend: 'Senden',
  apiSendAsk: '{what} senden? Es wird auf dieser Site ausgeführt.',
  apiSendYes: 'Ja, senden',
  apiStream: 'Es geht weiter, solange jemand zuhört: curl verwenden.',
  apiMessages: 'Nachrichten und Ereignisse (AsyncAPI)',
  apiMessagesHelp:
    'Was Encoder und Gateway einander über MQTT sagen, und die Ereignisse für Programme. Jedes Ereignis hat auch specversion, time, datacontenttype und clocksynced.',
  codeToScan:
    'Für die Kamera eines Telefons, das dieser Site vertraut: Es öffnet die Anmeldung mit eingetragenem Code.',
  newToken: 'Ein Token für ein Programm',
  newTokenHelp:
    'Etwa das Hotelsystem. Es wird einmal gezeigt: gleich in das Programm kopieren, nirgends sonst aufbewahren.',
  newTokenFor: 'Welches Programm, und wessen',
  newTokenRole: 'Was es darf',
  newTokenDays: 'Gültig für so viele Tage',
  newTokenMake: 'Token erstellen',
  newTokenMade: 'Jetzt kopieren, es wird nicht wieder gezeigt. Gültig bis {time}.',
  support: 'Support',
  supportHelp:
    'Für Hilfe von außen: Zustand, Konfiguration, Ende des Logs. Schlüssel, Token, PINs und Karten sind nicht darin, Namen vielleicht.',
  supportSave: 'Support-Paket speichern',
  supportSaved: '{name} ist gespeichert.',
  debug: '{minutes} Minuten lang alles loggen',
  debugAsk:
    '{minutes} Minuten lang alles loggen? Das Log wächst währenddessen schneller; danach ist es von selbst wie zuvor.',
  debugYes: 'Ja, loggen',
  debugUntil: 'Alles wird geloggt bis {time}.',
  debugEnd: 'Wieder loggen wie konfiguriert',
  register: 'Encoder registrieren',
  registerHelp:
    'Das Werkzeug des Encoders erzeugt eine signierte Nachricht: hier laden. Die Antwort wird einmal als Datei gespeichert; bis dahin bleibt er ausgeschlossen.',
  registerFile: 'Registrierungsnachricht (JSON)',
  registerNotJson: 'Das ist keine Registrierungsnachricht in JSON.',
  encoderId: 'Encoder-Id, wie in seinem Gerätezertifikat',
  registered:
    '{id} ist registriert. Die gespeicherte Datei in den Encoder laden; sie wird nicht noch einmal ausgegeben.',
  revokeEncoderAsk:
    '{id} sperren? Er wird sofort getrennt und bleibt es, bis er mit einem neuen Schlüssel registriert ist.',
  revokedEncoder: 'Er ist getrennt. Was er nicht geschrieben hat, ist beendet.',
  retireEncoderAsk:
    '{id} ausmustern? Er verschwindet mit seinen Schreibaufträgen aus den Listen. Ist er verbunden, zuerst sperren.',
  replaceAnyway: 'Trotzdem ersetzen: Es wird später montiert',
  newHere: 'Geräte an diesem Bus, die noch keinen Namen haben',
  cluster: 'Cluster',
  clusterActive: 'aktiv · Epoche {epoch} · durability: {durability}',
  leaseHeld: 'hat die Lease',
  leaseOver: 'Lease nicht erneuert: bewegt nichts',
  leaseOverHelp:
    'NATS antwortet nicht, und {name} kann inzwischen aktiv sein. Sehen Sie nach den NATS-Servern und dem Netz zu ihnen.',
  takesOver: 'übernimmt, wenn er ausfällt',
  takesOverNot: 'übernimmt nicht',
  standbyNone: 'Kein Controller folgt.',
  standbyBehind: '{count} {count?Nachricht:Nachrichten} zurück',
  clusterAlone: 'Fällt dieser Controller aus, übernimmt keiner',
  backups: 'Backups',
  backupNone:
    'Kein Backup ist konfiguriert: den öffentlichen Teil eines Schlüssels (gatehouse backup key) unter backup.recipients eintragen.',
  backupNever: 'Es gibt noch kein Archiv.',
  backupNewest: 'Das neueste: {time} ({ago}).',
  backupHelp:
    'Entsteht von selbst ({schedule}) in {folder} des Controllers. Nur der geheime Schlüssel, der anderswo liegt, öffnet es.',
  backup: 'Jetzt ein Backup machen',
  backupAsk:
    'Jetzt ein Backup dieses Gateways machen? Es kann einige Minuten dauern; die Türen merken nichts davon.',
  backupYes: 'Ja, machen',
  backupMaking: 'Das Backup entsteht: {percent} %',
  backupMade: 'Das Backup ist fertig: {file} auf dem Controller. An einen anderen Ort kopieren.',
  backupLeftOut: 'Nicht im Archiv, davon selbst eine Kopie aufbewahren: {files}.',
  pairCountdown: 'Das Gerät an Adresse {address} darf seinen Schlüssel noch {seconds} s lang nehmen.',
  encoderDown: 'Encoder {name} ist nicht verbunden',
  encoderDownHelp: 'Stromversorgung und Netzwerk prüfen.',
  gatewayDown: 'Zigbee-Gateway {name} ist nicht verbunden',
  tokenEnded: 'Das Token {name} ist abgelaufen: erneuern',
  queue: 'Schreibaufträge, die warten oder laufen: {count}',
  byBattery: 'Schwächste Batterie',
  systemConfig: 'Version der Systemkonfiguration',
  signal: 'Signal (RSSI)',
  period: 'Zeitraum',
  days: '{days?Ein Tag:{days} Tage}',
  periodAndExport: 'Zeitraum und Export',
  'relay-stillClosed':
    'Relais {relay} öffnete am Ende seines Impulses nicht: nachsehen, ob die Tür offen steht.',
  'relay-notRead': 'Ob Relais {relay} am Ende seines Impulses öffnete, war nicht zu lesen: nachsehen.',
  'relay-openedByGateway':
    'Das Gerät ließ Relais {relay} geschlossen, und das Gateway öffnete es: Es wird nicht mehr geschaltet. Gerät ersetzen, dann das Gateway neu starten.',
  batteryGood: 'kein Alarm',
  onlyNotApplied: 'Einstellungen nicht in Kraft',
  chainCheck: 'Prüfen, ob etwas verändert wurde',
  chainSound: '{count?Der Eintrag ist:Alle {count} Einträge sind} wie geschrieben, einer nach dem anderen.',
  chainFault:
    'Eintrag {entry} ist nicht, wie er geschrieben wurde ({reason}): eine Kopie der Datenbank aufbewahren und klären, wer Zugang hatte.',
};

/** Why a door is not reached, what to mend at a bus, and what a look at one has found; English, and what is absent here, is in the words of the gateway. */
const reasons = {
  GATEWAY_LOST: 'Das Gateway ist nicht verbunden.',
  LOCK_LEFT: 'Das Schloss hat das Netz verlassen: erneut beitreten lassen.',
  STAYED_BEHIND: 'Das Schloss blieb auf dem alten Kanal: erneut beitreten lassen.',
  BATTERY_LOW: 'Das Schloss schweigt: Batterie wechseln.',
  WEAK_LINK: 'Das Schloss schweigt, sein Funk war schwach.',
  NOT_ANSWERING: 'Das Schloss schweigt: Stromversorgung prüfen.',
  BUS_DOWN: 'Der Bus des Geräts ist nicht in Betrieb.',
  SILENT:
    '{hwId} an {bus} schweigt seit {since}: Stromversorgung und Verdrahtung prüfen. Wurde seine Adresse geändert, findet es eine Suche.',
  NEW_ONES_THERE:
    '{hwId} an {bus} schweigt seit {since}; neu dort: {named}. Ist eines davon an seinem Platz montiert: hier tippen und es an seine Stelle setzen.',
  PORTS_EXCHANGED:
    '{hwId} an {bus} schweigt seit {since}, und {newHwId} von Bus {newBus} antwortet dort: Haben die Adapter ihre Namen getauscht? Jeden Port mit seinem Link in /dev/serial/by-id benennen.',
  LATENCY_TIMER: 'Der Adapter hält jede Antwort bis zu {timerMs} ms zurück: {goodMs} in {file} schreiben.',
  SECOND_CONNECTION: 'Eine zweite Verbindung von {from} wurde abgewiesen: Der Bus hat schon eine.',
  PEER_REFUSED: 'Eine Verbindung von {from} wurde abgewiesen: allowedPeer ist {allowedPeer}.',
  EARLY_REPLIES:
    'Antworten kommen früher, als die Baudrate erlaubt: Der Port hat keine Leitung oder ein Echo.',
  BAUD_RATES_SCANNED:
    'Eine Suche probiert andere Baudraten: Bis sie endet, werden Geräte seltener gelesen, und Relais schalten vielleicht später.',
  NOTHING_HEARD:
    'Auf diesem Bus ist nichts zu hören, obwohl gefragt wird: Die Geräte haben keinen Strom oder eine andere Baudrate oder Parität (Suche mit Baudraten), das Kabel ist unterbrochen, oder der Adapter sendet nicht (Flusskontrolle).',
  ECHO: 'Der Adapter hört, was er sendet: sein Echo ausschalten oder localEcho auf true setzen.',
  LATE_REPLIES:
    'Antworten kamen zu spät, nach bis zu {longestMs} ms, an Adresse {addresses}: turnaroundMaxMs ({turnaroundMaxMs}) erhöhen, oder eine Verzögerung im Gerät oder im Device-Server suchen.',
  UNASKED_REPLIES:
    '{count} Antworten gehören zu keiner Frage: Das Modbus-Gateway wiederholt Antworten oder verwechselt, wer gefragt hat.',
  ADDRESS_TWICE_SUSPECTED:
    'Adresse {address}: Was dort ankommt, ist beschädigt oder doppelt. Haben zwei Geräte diese Adresse? Eines abklemmen und ihm eine andere geben; sonst die Leitung dorthin prüfen.',
  ADDRESS_TWICE:
    'Zwei Geräte antworten an Adresse {address}: eines abklemmen, dem anderen eine andere Adresse geben, dann wieder anklemmen.',
  ADDRESS_UNREADABLE:
    'Was an Adresse {address} antwortet, ist unlesbar: zwei Geräte mit dieser Adresse, oder schlechte Leitungen.',
  NAME_TWICE: 'Außer dem Gerät an Adresse {address} antwortet noch eines als {hwId}.',
  NO_NAME: 'Das Gerät an Adresse {address} hat keinen Namen, wo Profil {profile} ihn erwartet: vergleichen.',
  PROFILE_REFUSED: 'Das Gerät an Adresse {address} beantwortet nicht, was Profil {profile} fragt: {reason}',
  NO_KEY:
    'Das Gerät an Adresse {address} ({hwId}) hat keinen Schlüssel: ihm auf der Seite RS-485 einen geben.',
  DEVICE_ALARM: 'Gerät an Adresse {address}: {alarms}',
  UNPROVEN_DEVICE:
    'Gerät an Adresse {address}: {alarms}. Wurde es getauscht oder zurückgesetzt, ihm einen neuen Schlüssel geben.',
  WATCHDOG_UNFED:
    'Der Watchdog von {device} läuft nach {timeoutMs} ms ab und wurde zu spät bedient ({pausedMs} ms): fehlende Geräte entfernen, weniger Geräte abfragen oder die Baudrate erhöhen.',
  WATCHDOG_TIME:
    'Der Watchdog von {device} nimmt seine Zeit von {timeoutMs} ms nicht an: Ohne ihn wird kein Relais geschaltet.',
  WATCHDOG_NOT_IN_FORCE:
    'Der Watchdog von {device} ist nicht in Kraft ({place} zeigt {value}): Ohne ihn wird kein Relais geschaltet.',
  OUTPUT_STAYS_ON: '{output} von {device} geht nicht aus: nachsehen, ob die Tür offen steht.',
  PULSE_AT_SET_UP: 'Während der Watchdog von {device} eingerichtet wurde, begann ein Impuls.',
  OTHER_PRODUCT:
    'Das Gerät an Adresse {address} ist kein {product}: {register} zeigt {value}, Profil {profile} erwartet {wanted}. Nichts wurde geschrieben.',
  MODULE_UNKNOWN: 'Das Modul {address} nennt sich {name}: Das ist unbekannt, auch in moduleTypes.',
  MODULE_WITHOUT_OUTPUTS: 'Das Modul {address} ({product}) hat keine Ausgänge.',
  MODULE_WITHOUT_WATCHDOG:
    'Das Modul {address} ({product}) hat keinen Watchdog: Ohne Gateway schaltete nichts seine Ausgänge ab.',
  MODULE_WATCHDOG_REFUSED: 'Das Modul {address} ({product}) richtet seinen Watchdog nicht ein: {reason}',
  BUS_IS_DOWN: 'Nicht in Betrieb ({reason}): Adapter und Port {port} prüfen.',
  LATE_BYTES:
    '{count} Bytes kamen nach ihrer Zeit, wie Antworten von Adresse {addresses}: turnaroundMaxMs des Busses erhöhen; kommen sie dann noch, Störungen suchen.',
  NOISE:
    '{count} Bytes kamen, als niemand gefragt war: kein Bias, Störungen auf der Leitung, oder ein zweiter Master.',
  DEAD_DEVICE: 'Das Gerät hier antwortet nicht: Stromversorgung, Adressschalter und Abzweig prüfen.',
  DAMAGED_EVERYWHERE:
    'Beschädigte Telegramme an den meisten Adressen: 120 Ohm an beiden Enden und nirgends sonst, Bias an einer Stelle, Leitung zu lang, oder keine gemeinsame Masse.',
  NO_FRAMES_EVERYWHERE:
    'Keine Telegramme an den meisten Adressen: baudRate, parity und stopBits mit den Geräten vergleichen.',
  NONE_IN_RANGE: 'In diesem Bereich antwortet niemand; auf dem Bus antwortet Adresse {addresses}.',
  NONE_UNDERSTOOD:
    'Was antwortet, ist nicht zu verstehen: baudRate, parity und stopBits mit den Geräten vergleichen; dann A und B tauschen.',
  NONE_ANSWERS:
    'Niemand antwortet: Sind A und B vertauscht (Hersteller nennen sie verschieden), haben die Geräte Strom, ist die Baudrate ihre?',
  TWO_ANSWER:
    '{percent} % beschädigt, zu verschiedenen Zeiten: zwei Geräte mit dieser Adresse? Eines abklemmen und noch einmal untersuchen.',
  DAMAGED:
    '{percent} % seiner Telegramme sind beschädigt: Klemmen und Abzweig prüfen, und die 120 Ohm in seiner Nähe.',
  NO_FRAMES:
    '{percent} % sind kein Telegramm, und nur hier: zwei Geräte mit dieser Adresse? Eines abklemmen und noch einmal untersuchen; dann Parität und Stoppbits vergleichen.',
  ANSWERS_MISSING: '{percent} % ohne Antwort: eine lose Klemme, oder die Versorgung bricht ein.',
  ANSWERS_LATE:
    '{count} Antworten kamen zu spät: turnaroundMaxMs erhöhen, oder eine Verzögerung im Gerät oder im Device-Server suchen.',
  ANSWERS_UNASKED:
    'Antworten ohne Frage: ein zweites Gerät mit dieser Adresse, ein zweiter Master, oder ein Adapter mit Echo (localEcho).',
  ANSWERS_WITH_ERROR:
    'Es antwortet zu {percent} % mit einem Fehler, siehe Warnungen des Busses: Produkt und Profil vergleichen.',
  ANSWERS_SLOWLY:
    'Es braucht {milliseconds} ms für eine Antwort, die anderen weniger: eine Verzögerung suchen.',
  NAMELESS:
    'Es antwortet, und kann nicht sagen, wer es ist: Adresse und Profil in die Konfiguration eintragen.',
  ANSWERING:
    'Antwortende Geräte: {count}, davon neu: {added}; das langsamste antwortet nach {milliseconds} ms.',
  MODULE_NOT_HEARD: 'Das Modul {address} hat noch nicht geantwortet.',
} satisfies Partial<Record<OfflineReason['code'] | BusWarningCode | FindingCode | MissingCode, string>>;
export const reasonsDe: Readonly<Record<string, string>> = reasons;

/** Why something was refused, or a link is down; of what is absent here, and of `{message}`, the words are the gateway's. */
const errors = {
  UNAUTHORIZED: 'Der Code gilt nicht oder nicht mehr: mit gatehouse login-code einen neuen erzeugen.',
  FORBIDDEN: 'Dafür fehlt Ihnen die Rolle.',
  NOT_FOUND: 'Das gibt es nicht mehr.',
  RATE_LIMITED: 'Zu viele Anfragen auf einmal: gleich noch einmal versuchen.',
  SHUTTING_DOWN: 'Das Gateway wird gerade beendet: gleich noch einmal versuchen.',
  STORAGE_UNAVAILABLE: 'Der Controller kann nichts speichern: seine Platte prüfen.',
  NOT_CONNECTED: 'Der Encoder ist nicht verbunden: Stromversorgung und Netzwerk prüfen.',
  QUEUE_FULL: 'Vor diesem Encoder warten schon zu viele Aufträge: warten, bis einer fertig ist.',
  NOT_SUPPORTED: 'Das kann dieses Gerät oder Schloss nicht: {message}',
  ALREADY_EXISTS: 'Das gibt es schon: {message}',
  IN_USE: 'Es wird noch gebraucht: {message}',
  REQUEST_ID_REUSED: 'Ein anderer Auftrag hat diese Id schon: noch einmal senden.',
  ENCODER_UPGRADING: 'Der Encoder erhält gerade neue Software: danach noch einmal senden.',
  DEVICE_OFFLINE: 'Nicht erreicht: {message}',
  LINK_LOST: 'Die Verbindung ist abgebrochen: {message}',
  NO_REPLY: 'Keine Antwort: {message}',
  REFUSED: 'Abgelehnt: {message}',
  BUSY: 'Ist mit anderem beschäftigt: {message}',
} satisfies Partial<Record<ErrorCode | DriverErrorCode, string>>;
export const errorsDe: Readonly<Record<string, string>> = errors;

/** What is wrong with a field, by code and the last step of its path or what is counted; of what is absent the words are the gateway's. */
export const faultsDe: Readonly<Record<string, string>> = {
  REQUIRED: 'fehlt',
  UNKNOWN_FIELD: 'gibt es hier nicht',
  DUPLICATE_KEY: 'steht zweimal da',
  TOO_BIG: 'höchstens {limit}',
  'TOO_BIG string': 'höchstens {limit} Zeichen',
  'TOO_BIG array': 'höchstens {limit} Einträge',
  TOO_SMALL: 'mindestens {limit}',
  'TOO_SMALL string': 'mindestens {limit} Zeichen',
  'TOO_SMALL array': 'mindestens {limit} Einträge',
  INVALID_VALUE: 'nur {values}',
  INVALID_TYPE: 'ist von anderer Art: {message}',
  'INVALID_FORMAT mac': '16 Hexadezimalziffern, wie aufgedruckt',
  'INVALID_FORMAT name': 'etwas Sichtbares, ohne Steuerzeichen',
  'INVALID_FORMAT description': 'ohne Steuerzeichen',
  'INVALID_FORMAT pmsId': 'ohne Leerzeichen am Rand und ohne Steuerzeichen',
};

/** What a bus counts of the exchanges with a device, as the interface calls it in English. */
export const countersDe: Readonly<Record<string, string>> = {
  timeouts: 'ohne Antwort',
  crc: 'beschädigt',
  framing: 'kein Telegramm',
  refusals: 'abgelehnt',
  collisions: 'Kollisionen',
  late: 'zu spät',
  stray: 'Streubytes',
};
