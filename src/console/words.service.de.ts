import type { serviceEn } from './words.service.en.ts';

export const serviceDe: Record<keyof typeof serviceEn, string> = {
  site: 'Site',
  siteHelp:
    'Gruppen, Zeitpläne, Vorlagen, Türen und RS-485-Geräte als eine Datei. Schlüssel und Zustände sind nicht darin: dafür gibt es Backups.',
  siteSave: 'Site als Datei speichern',
  siteSaved: 'Die Site ist gespeichert: {count} Einträge.',
  siteImport: 'Site-Datei importieren',
  siteFile: 'Site-Datei, wie diese Seite sie speichert (JSON)',
  siteNotJson:
    'Das ist keine Site-Datei in JSON: {reason}. Eine Datei in YAML wird auf dem Controller importiert: gatehouse import DATEI.',
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
  intervals: 'Intervalle',
  relayMilliseconds: 'Millisekunden des Relais',
  allGroups: 'Alle Gruppen',
  noGroup: 'In keiner Gruppe',
  anyGateway: 'Jedes Gateway',
  noGateway: 'An keinem Gateway',
};
