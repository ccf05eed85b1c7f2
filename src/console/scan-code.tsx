/**
 * Reads a code that is printed on a lock with the camera, where the browser can (Shape Detection API); elsewhere nothing is
 * shown, and the code is typed.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Said } from './messages.tsx';
import { t } from './words.ts';

interface Detector {
  detect(video: HTMLVideoElement): Promise<{ rawValue: string }[]>;
}
const { BarcodeDetector } = globalThis as { BarcodeDetector?: new () => Detector };

const LOOK_MS = 200;

export function ScanCode({ found }: { found: (text: string) => void }) {
  const isOpen = useSignal(false);
  const fault = useSignal('');
  if (!BarcodeDetector) return null;
  const end = (text: string | undefined) => {
    isOpen.value = false;
    if (text !== undefined) found(text);
    fault.value = text === undefined ? t('cameraRefused') : '';
  };
  return (
    <div>
      <button
        type="button"
        onClick={() => {
          fault.value = '';
          isOpen.value = !isOpen.value;
        }}
      >
        {t(isOpen.value ? 'cancel' : 'scanCode')}
      </button>
      {isOpen.value && <Camera detector={new BarcodeDetector()} end={end} />}
      <Said text={fault.value} />
    </div>
  );
}

/** `end` gets undefined where there is no camera, or it may not be used. */
function Camera({ detector, end }: { detector: Detector; end: (text: string | undefined) => void }) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    let stream: MediaStream | undefined;
    let timer: ReturnType<typeof setTimeout>;
    let isShown = true;
    const look = async () => {
      if (!video.current) return;
      // Before its first picture there is nothing to look at.
      const codes = await detector.detect(video.current).catch(() => []);
      if (!isShown) return;
      if (codes[0]) end(codes[0].rawValue);
      else timer = setTimeout(look, LOOK_MS);
    };
    const begin = async () => {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } });
      if (!isShown || !video.current) return stop();
      video.current.srcObject = stream;
      await look();
    };
    const stop = () => {
      for (const track of stream?.getTracks() ?? []) track.stop();
    };
    begin().catch(() => {
      if (isShown) end(undefined);
    });
    return () => {
      isShown = false;
      clearTimeout(timer);
      stop();
    };
  }, []);
  // Nothing is to be heard in it.
  return <video ref={video} class="camera" autoplay muted playsInline aria-label={t('scanCode')} />;
}
