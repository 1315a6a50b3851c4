import { AppError } from '../errors.ts';

/** The content is to blame: what is wrong with it, continuing `'content' `, and what to do about it. */
export function unrenderable(fault: string, advice: string): AppError {
  return new AppError('unrenderable', `'content' ${fault}. ${advice}`, {
    errors: [{ field: 'content', message: fault }],
  });
}
